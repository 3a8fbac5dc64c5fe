import type { ITheme } from '@xterm/xterm'
import { App } from 'antd'
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Terminal, TerminalBell, TerminalPaste } from '@/api/types.gen'
import { platformOf } from '@/lib/platform'
import type { AttachmentState } from './attachment'
import { flash, ring } from './bell'
import type { KeyAction, Move } from './keys'
import type { Side } from './layout'
import type { PrintedLink } from './link'
import { cleanPaste, pasteAsks, pasteRuns } from './paste'
import { fontReady } from './screen'
import { Shell } from './shell'

export interface Look {
  fontSize: number
  family: string
  theme: ITheme
  bell: TerminalBell
  paste: TerminalPaste
  reader: boolean
}

/** What a shell tells and asks for. */
export interface ShellTold {
  onTitle: (title: string) => void
  onBell: () => void
  onSplit: (side: Side) => void
  onBeside: (direction: Move) => void
}

export interface ShellStatus {
  state: AttachmentState
  exitCode: number | null
  /** Bytes that the cap has dropped since the notice was last closed. */
  lost: number
}

export interface ShellUse {
  shell: RefObject<Shell | null>
  status: ShellStatus
  /** Text that would run at once, waiting for a yes. */
  question: string | null
  /** It would: not merely several lines for a program that takes them as pasted. */
  runs: boolean
  answer: (yes: boolean) => void
  /** An address that was pressed, waiting for a yes. */
  link: PrintedLink | null
  forgetLink: () => void
  act: (action: KeyAction) => void
  searching: boolean
  setSearching: (on: boolean) => void
  forgetLost: () => void
}

const platform = platformOf(navigator.userAgent)
const first: ShellStatus = { state: 'connecting', exitCode: null, lost: 0 }

/** Shows a shell in an element for as long as the component lives. */
export function useShell(
  element: RefObject<HTMLElement | null>,
  session: string,
  terminal: Terminal,
  opened: RefObject<ReadonlySet<string>>,
  look: Look,
  told: ShellTold,
): ShellUse {
  const { onSplit, onBeside } = told
  const { message } = App.useApp()
  const { t } = useTranslation('terminal')
  const shell = useRef<Shell | null>(null)
  const [status, setStatus] = useState(first)
  const [question, setQuestion] = useState<string | null>(null)
  const [runs, setRuns] = useState(true)
  const [searching, setSearching] = useState(false)
  const [link, setLink] = useState<PrintedLink | null>(null)

  const guard = look.paste
  const paste = useCallback(
    (text: string) => {
      const clean = cleanPaste(text)
      const bracketed = shell.current?.screen.terminal.modes.bracketedPasteMode ?? false
      setRuns(pasteRuns(clean, bracketed))
      if (pasteAsks(clean, bracketed, guard)) setQuestion(clean)
      else shell.current?.paste(clean)
    },
    [guard],
  )

  const act = useCallback(
    (action: KeyAction) => {
      const screen = shell.current?.screen
      if (!screen) return
      if (action === 'find') setSearching(true)
      if (action === 'selectAll') screen.terminal.selectAll()
      if (action === 'copy' && screen.terminal.hasSelection()) {
        const text = screen.terminal.getSelection()
        navigator.clipboard.writeText(text).then(
          () => screen.terminal.clearSelection(),
          () => message.error(t('copyFailed')),
        )
      }
      if (action === 'splitRight' || action === 'splitDown') onSplit(action === 'splitRight' ? 'right' : 'down')
      if (action === 'left' || action === 'right' || action === 'up' || action === 'down') onBeside(action)
      if (action === 'paste') {
        navigator.clipboard.readText().then(paste, () => message.info(t('pasteForbidden')))
      }
    },
    [message, onBeside, onSplit, paste, t],
  )

  // What the shell calls back may change with every render; the shell itself must not.
  const calls = useRef({ act, paste, told, look, terminal, opened })
  useEffect(() => {
    calls.current = { act, paste, told, look, terminal, opened }
  })

  useEffect(() => {
    let gone = false
    void fontReady(calls.current.look.fontSize).then(() => {
      const host = element.current
      if (gone || !host) return
      shell.current = new Shell({
        session,
        terminal: calls.current.terminal,
        fresh: calls.current.opened.current.has(calls.current.terminal.id),
        platform,
        element: host,
        fontSize: calls.current.look.fontSize,
        family: calls.current.look.family,
        theme: calls.current.look.theme,
        reader: calls.current.look.reader,
        openLink: setLink,
        onState: (state, exitCode) => setStatus((old) => ({ ...old, state, exitCode })),
        onGap: (bytes) => setStatus((old) => ({ ...old, lost: old.lost + bytes })),
        onTitle: (title) => calls.current.told.onTitle(title),
        onBell: () => {
          const { bell } = calls.current.look
          if (bell === 'sound') ring()
          if (bell === 'visual') flash(host)
          if (bell !== 'none') calls.current.told.onBell()
        },
        onKey: (action) => calls.current.act(action),
        onPaste: (text) => calls.current.paste(text),
      })
      if (host.closest('[data-active="true"]')) shell.current.screen.terminal.focus()
    })
    return () => {
      gone = true
      shell.current?.close()
      shell.current = null
    }
  }, [element, session, terminal.id])

  useEffect(() => {
    shell.current?.setLook(look)
  }, [look])

  const answer = useCallback(
    (yes: boolean) => {
      if (yes && question !== null) shell.current?.paste(question)
      setQuestion(null)
      shell.current?.screen.terminal.focus()
    },
    [question],
  )
  const forgetLost = useCallback(() => setStatus((old) => ({ ...old, lost: 0 })), [])
  const forgetLink = useCallback(() => {
    setLink(null)
    shell.current?.screen.terminal.focus()
  }, [])
  return { shell, status, question, runs, answer, link, forgetLink, act, searching, setSearching, forgetLost }
}
