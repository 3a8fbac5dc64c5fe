import { Alert, Button, Dropdown, Modal } from 'antd'
import {
  ClipboardPaste,
  Copy,
  Download,
  LoaderCircle,
  RotateCcw,
  Search,
  SquareSplitHorizontal,
  SquareSplitVertical,
  TextSelect,
  X,
} from 'lucide-react'
import { type RefObject, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { Terminal } from '@/api/types.gen'
import { target } from '@/api/client'

import { formatBytes } from '@/lib/bytes'
import { saveUrl } from '@/lib/save'
import { platformOf } from '@/lib/platform'
import '@xterm/xterm/css/xterm.css'
import css from './terminal.module.css'
import { shortcut } from './keys'
import { countLines, pastePreview } from './paste'
import { LinkQuestion } from './LinkQuestion'
import { SearchBar } from './SearchBar'
import type { Box } from './layout'
import { type Look, type ShellTold, type ShellUse, useShell } from './useShell'

interface ShellViewProps extends ShellTold {
  session: string
  terminal: Terminal
  /** Ids of the shells that this page has opened itself. */
  opened: RefObject<ReadonlySet<string>>
  /** It has the keys. */
  active: boolean
  /** Its part of the tab that is shown; null while another tab is. */
  box: Box | null
  look: Look
  /** A text to be found in it; a new object asks anew. */
  find: { text: string } | null
  /** The session can hold a new shell. */
  canRestart: boolean
  onActive: () => void
  onRestart: () => void
  onClose: () => void
}

const percent = (part: number) => `${part * 100}%`
const platform = platformOf(navigator.userAgent)

/** One shell: its screen, and quietly around it what there is to know. */
export function ShellView(props: ShellViewProps) {
  const { t } = useTranslation('terminal')
  const host = useRef<HTMLDivElement>(null)
  const use = useShell(host, props.session, props.terminal, props.opened, props.look, props)
  const { shell, status, act } = use
  const { box } = props

  useEffect(() => {
    if (!props.active) return
    shell.current?.claimSize()
    shell.current?.screen.terminal.focus()
  }, [props.active, shell])

  const { setSearching } = use
  useEffect(() => {
    if (props.find) setSearching(true)
  }, [props.find, setSearching])

  useEffect(() => {
    const focused = () => {
      shell.current?.retry()
      if (props.active) shell.current?.claimSize()
    }
    window.addEventListener('focus', focused)
    window.addEventListener('online', focused)
    return () => {
      window.removeEventListener('focus', focused)
      window.removeEventListener('online', focused)
    }
  }, [props.active, shell])

  const items = [
    { key: 'copy', icon: <Copy size={14} />, label: t('copy'), extra: shortcut('C', platform) },
    { key: 'paste', icon: <ClipboardPaste size={14} />, label: t('paste'), extra: shortcut('V', platform) },
    { key: 'selectAll', icon: <TextSelect size={14} />, label: t('selectAll'), extra: shortcut('A', platform) },
    { type: 'divider' as const },
    { key: 'find', icon: <Search size={14} />, label: t('find'), extra: shortcut('F', platform) },
    { type: 'divider' as const },
    {
      key: 'splitRight',
      icon: <SquareSplitHorizontal size={14} />,
      label: t('splitRight'),
      extra: shortcut('E', platform),
      disabled: !props.canRestart,
    },
    {
      key: 'splitDown',
      icon: <SquareSplitVertical size={14} />,
      label: t('splitDown'),
      extra: shortcut('O', platform),
      disabled: !props.canRestart,
    },
    { key: 'download', icon: <Download size={14} />, label: t('download') },
    { key: 'close', icon: <X size={14} />, label: t('closeTab') },
  ]
  const choose = (key: string) => {
    if (key === 'close') props.onClose()
    else if (key === 'download')
      saveUrl('', target('terminal-output', { path: { id: props.session, terminal: props.terminal.id } }))
    else act(key as 'copy')
  }
  const style = box
    ? { left: percent(box.left), top: percent(box.top), width: percent(box.width), height: percent(box.height) }
    : undefined
  return (
    <div
      className={css.shell}
      data-active={props.active}
      data-state={status.state}
      hidden={!box}
      style={style}
      data-testid={`shell-${props.terminal.id}`}
      onFocus={props.onActive}
      onPointerDown={props.onActive}
    >
      {status.lost > 0 ? (
        <Alert
          banner
          closable={{ onClose: use.forgetLost }}
          type="info"
          title={t('lost', { amount: formatBytes(status.lost) })}
        />
      ) : null}
      <div className={css.stage} style={{ background: props.look.theme.background }}>
        <Dropdown menu={{ items, onClick: ({ key }) => choose(key) }} trigger={['contextMenu']}>
          <div className={css.host} ref={host} />
        </Dropdown>
        {use.searching && shell.current ? (
          <SearchBar
            key={props.find?.text ?? ''}
            screen={shell.current.screen}
            {...(props.find ? { text: props.find.text } : {})}
            onClose={() => use.setSearching(false)}
          />
        ) : null}
        {status.state === 'reconnecting' ? (
          <div className={css.pill} role="status">
            <LoaderCircle size={13} className={css.turn} aria-hidden />
            {t('reconnecting')}
            <Button type="link" size="small" onClick={() => shell.current?.retry()}>
              {t('now')}
            </Button>
          </div>
        ) : null}
      </div>
      <End {...props} use={use} />
      <PasteQuestion use={use} />
      <LinkQuestion session={props.session} link={use.link} onClose={use.forgetLink} />
    </div>
  )
}

/** What is left when a shell has ended. */
function End({ use, canRestart, onRestart, onClose }: ShellViewProps & { use: ShellUse }) {
  const { t } = useTranslation('terminal')
  const { state, exitCode } = use.status
  if (state !== 'exited' && state !== 'gone') return null
  return (
    <div className={css.end} role="status">
      <span>{state === 'exited' ? t('exited', { code: exitCode }) : t('gone')}</span>
      {canRestart ? (
        <Button size="small" type="primary" icon={<RotateCcw size={13} />} onClick={onRestart}>
          {t('restart')}
        </Button>
      ) : null}
      <Button size="small" onClick={onClose}>
        {t('closeTab')}
      </Button>
    </div>
  )
}

function PasteQuestion({ use }: { use: ShellUse }) {
  const { t } = useTranslation('terminal')
  const text = use.question ?? ''
  return (
    <Modal
      open={use.question !== null}
      title={t(use.runs ? 'pasteTitle' : 'pasteLines', { count: countLines(text) })}
      okText={t('pasteYes')}
      cancelText={t('pasteNo')}
      onOk={() => use.answer(true)}
      onCancel={() => use.answer(false)}
      destroyOnHidden
    >
      <p className={css.quiet}>{t(use.runs ? 'pasteText' : 'pasteSeveral')}</p>
      <pre className={css.preview}>{pastePreview(text)}</pre>
    </Modal>
  )
}
