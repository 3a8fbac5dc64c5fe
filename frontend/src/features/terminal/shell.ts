import { ApiProblem, target, call } from '@/api/client'
import type { Terminal } from '@/api/types.gen'
import type { Platform } from '@/lib/platform'
import { Attachment, type AttachmentState } from './attachment'
import { type KeyAction, keyAction } from './keys'
import { familyOf, Screen, type ScreenConfig } from './screen'

/** On opening a shell that has printed more than this, only its newest bytes are asked for. */
const REPLAY = 4 * 1024 * 1024

/** A resize is sent when the window has kept its size for this long, in milliseconds. */
const SETTLE = 80

/** Answers to programs' questions are sent by the viewer that was typed in within this time, in milliseconds. */
const RECENT = 10_000

interface ShellConfig extends ScreenConfig {
  session: string
  terminal: Terminal
  /** It was opened by this page just now: nobody has seen its output yet. */
  fresh: boolean
  platform: Platform
  element: HTMLElement
  onState(state: AttachmentState, exitCode: number | null): void
  onGap(bytes: number): void
  onTitle(title: string): void
  onBell(): void
  onKey(action: KeyAction): void
  onPaste(text: string): void
}

/** Shell shows one shell of a session in an element: the screen, the attachment, and what passes between them. */
export class Shell {
  readonly screen: Screen
  readonly #config: ShellConfig
  readonly #attachment: Attachment
  readonly #watch: ResizeObserver
  readonly #encoder = new TextEncoder()
  #settle: ReturnType<typeof setTimeout> | undefined
  #typedAt = 0

  constructor(config: ShellConfig) {
    this.#config = config
    this.screen = new Screen(config)
    this.screen.open(config.element)
    this.#attachment = this.#attach()
    this.#listen()
    this.#watch = new ResizeObserver(() => this.#resized())
    this.#watch.observe(config.element)
    this.claimSize()
  }

  /** Makes the shell as large as this viewer's element; the last viewer to ask decides. */
  claimSize(): void {
    if (!this.screen.fit()) return
    this.#attachment.resize(this.screen.terminal.cols, this.screen.terminal.rows)
  }

  /** Types pasted text, as a paste where the program knows what that is. */
  paste(text: string): void {
    this.#typedAt = Date.now()
    this.screen.terminal.paste(text)
  }

  retry(): void {
    this.#attachment.retry()
  }

  setLook(look: Pick<ScreenConfig, 'fontSize' | 'family' | 'theme' | 'reader'>): void {
    const { options } = this.screen.terminal
    options.theme = look.theme
    options.screenReaderMode = look.reader
    const family = familyOf(look.family)
    if (options.fontSize === look.fontSize && options.fontFamily === family) return
    options.fontSize = look.fontSize
    options.fontFamily = family
    this.claimSize()
  }

  close(): void {
    clearTimeout(this.#settle)
    this.#watch.disconnect()
    this.#attachment.close()
    this.#config.element.removeEventListener('paste', this.#pasted, true)
    this.screen.dispose()
  }

  #attach(): Attachment {
    const { session, terminal, fresh } = this.#config
    const client = crypto.randomUUID()
    const path = { id: session, terminal: terminal.id }
    const origin = location.origin.replace(/^http/, 'ws')
    return new Attachment({
      open: (offset) => new WebSocket(origin + target('terminal-attach', { path, query: { offset, client } })),
      exists: () => this.#exists(),
      offset: Math.max(terminal.start, terminal.end - REPLAY),
      replayUntil: fresh ? 0 : terminal.end,
      events: {
        output: (bytes, replayed, done) => this.screen.write(bytes, replayed, done),
        modes: (bytes) => this.screen.write(bytes, true),
        gap: (from, to) => this.#config.onGap(to - from),
        size: (cols, rows) => this.#sized(cols, rows),
        state: (state, code) => this.#config.onState(state, code),
      },
    })
  }

  async #exists(): Promise<boolean> {
    const { session, terminal } = this.#config
    try {
      const all = await call('terminals', { path: { id: session } })
      return all.some((other) => other.id === terminal.id)
    } catch (error) {
      return !(error instanceof ApiProblem && (error.status === 404 || error.status === 409))
    }
  }

  #listen(): void {
    const { terminal } = this.screen
    terminal.onData((data) => this.#data(data))
    terminal.onBinary((data) => this.#attachment.input(Uint8Array.from(data, (c) => c.charCodeAt(0))))
    terminal.onKey(() => {
      this.#typedAt = Date.now()
    })
    terminal.onBell(() => {
      if (!this.screen.replaying) this.#config.onBell()
    })
    terminal.onTitleChange((title) => this.#config.onTitle(title))
    terminal.attachCustomKeyEventHandler((event) => this.#key(event))
    this.#config.element.addEventListener('paste', this.#pasted, true)
  }

  /**
   * xterm gives what was typed and what it answers to programs alike. Where two
   * windows watch one shell only the one in use may answer.
   */
  #data(data: string): void {
    const answer = /^\x1b(\[[?>=]?[\d;]*\$?[cnRy]|\[\d+;\d+;\d+t|\]\d+;|P)/.test(data)
    const inUse = document.hasFocus() || Date.now() - this.#typedAt < RECENT
    if (answer && !inUse) return
    this.#attachment.input(this.#encoder.encode(data))
  }

  #key(event: KeyboardEvent): boolean {
    const action = keyAction(event, this.#config.platform, this.screen.terminal.hasSelection())
    if (action === 'pass') return true
    if (action !== 'browser') {
      event.preventDefault()
      event.stopPropagation()
      this.#config.onKey(action)
    }
    return false
  }

  readonly #pasted = (event: ClipboardEvent): void => {
    const text = event.clipboardData?.getData('text/plain') ?? ''
    event.preventDefault()
    event.stopPropagation()
    if (text !== '') this.#config.onPaste(text)
  }

  #resized(): void {
    clearTimeout(this.#settle)
    this.#settle = setTimeout(() => this.claimSize(), SETTLE)
  }

  /** Another viewer has changed the size: show the shell as it is. */
  #sized(cols: number, rows: number): void {
    const { terminal } = this.screen
    if (cols < 1 || rows < 1 || (cols === terminal.cols && rows === terminal.rows)) return
    terminal.resize(cols, rows)
  }
}
