import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { type ITheme, Terminal } from '@xterm/xterm'
import { isCalm } from '@/lib/useMedia'
import { hasGraphics } from './graphics'
import { type PrintedLink, readLink } from './link'

const FAMILY =
  "'JetBrains Mono Variable', 'Pretendard Variable', 'Noto Sans Mono', ui-monospace, 'DejaVu Sans Mono', 'Noto " +
  "Color Emoji', monospace"

/** Lines above the screen that can be scrolled back to. */
const SCROLLBACK = 20_000

export interface ScreenConfig {
  fontSize: number
  /** A font that goes before Slipway's own; empty: none. */
  family: string
  theme: ITheme
  /** Screen readers are told what is printed. */
  reader: boolean
  openLink(link: PrintedLink): void
}

/** The fonts of a shell, the one that a person has named first. */
export const familyOf = (name: string): string => (name === '' ? FAMILY : `'${name}', ${FAMILY}`)

/** Waits until the terminal's font can be measured, but never long. */
export async function fontReady(size: number): Promise<void> {
  const patience = new Promise<void>((resolve) => setTimeout(resolve, 1500))
  const load = Promise.all(
    ['', 'bold '].map((weight) => document.fonts.load(`${weight}${size}px 'JetBrains Mono Variable'`)),
  )
  await Promise.race([load.catch(() => undefined), patience])
}

/** Screen is an xterm with the addons that Slipway uses, and the order in which output is parsed. */
export class Screen {
  readonly terminal: Terminal
  readonly search = new SearchAddon({ highlightLimit: 2000 })
  readonly #fit = new FitAddon()
  readonly #replayed: boolean[] = [] // one for each write that is not parsed yet, in their order

  constructor(config: ScreenConfig) {
    this.terminal = new Terminal({
      allowProposedApi: true,
      cursorBlink: !isCalm(),
      fontFamily: familyOf(config.family),
      screenReaderMode: config.reader,
      fontSize: config.fontSize,
      lineHeight: 1.2,
      minimumContrastRatio: 4.5,
      rightClickSelectsWord: false,
      macOptionIsMeta: true,
      scrollback: SCROLLBACK,
      theme: config.theme,
      linkHandler: { activate: (event, uri) => this.#follow(event, uri, config.openLink) },
    })
    this.terminal.loadAddon(this.#fit)
    this.terminal.loadAddon(this.search)
    this.terminal.loadAddon(new Unicode11Addon())
    this.terminal.loadAddon(new WebLinksAddon((event, uri) => this.#follow(event, uri, config.openLink)))
    this.terminal.unicode.activeVersion = '11'
    this.#muteReplayedQuestions()
  }

  /** Puts the screen into an element and gives it the element's size. */
  open(element: HTMLElement): void {
    this.terminal.open(element)
    this.fit()
    if (hasGraphics()) void this.#useGraphics()
  }

  /**
   * Shows bytes; done is called when they have been parsed. Programs' questions in replayed bytes are not answered
   * again.
   */
  write(bytes: Uint8Array | string, replayed: boolean, done?: () => void): void {
    this.#replayed.push(replayed)
    this.terminal.write(bytes, () => {
      this.#replayed.shift()
      done?.()
    })
  }

  /** Whether what is being shown was printed before this viewer came. */
  get replaying(): boolean {
    return this.#replayed[0] === true
  }

  /** Takes the size of the element; reports whether it has one. */
  fit(): boolean {
    const size = this.#fit.proposeDimensions()
    if (!size || !(size.cols > 1) || !(size.rows > 0)) return false
    if (size.cols !== this.terminal.cols || size.rows !== this.terminal.rows) this.terminal.resize(size.cols, size.rows)
    return true
  }

  dispose(): void {
    this.terminal.dispose()
  }

  #follow(event: MouseEvent, uri: string, open: (link: PrintedLink) => void): void {
    const link = event.ctrlKey || event.metaKey ? readLink(uri) : null
    if (link) open(link)
  }

  async #useGraphics(): Promise<void> {
    const { WebglAddon } = await import('@xterm/addon-webgl')
    const addon = new WebglAddon()
    addon.onContextLoss(() => addon.dispose()) // the DOM renderer takes over
    try {
      this.terminal.loadAddon(addon)
    } catch {
      addon.dispose()
    }
  }

  /**
   * A program that asked the terminal something long ago has had its answer, or
   * is gone; an answer to the replay would be typed into whatever runs now.
   */
  #muteReplayedQuestions(): void {
    const muted = () => this.replaying
    const { parser } = this.terminal
    for (const prefix of [undefined, '>', '=', '?'] as const) {
      parser.registerCsiHandler(prefix ? { prefix, final: 'c' } : { final: 'c' }, muted)
      parser.registerCsiHandler(prefix ? { prefix, final: 'n' } : { final: 'n' }, muted)
    }
    parser.registerCsiHandler({ intermediates: '$', final: 'p' }, muted)
    parser.registerCsiHandler({ prefix: '?', intermediates: '$', final: 'p' }, muted)
    parser.registerCsiHandler({ prefix: '>', final: 'q' }, muted)
    parser.registerCsiHandler({ final: 't' }, muted)
    parser.registerDcsHandler({ intermediates: '$', final: 'q' }, muted)
    for (const code of [4, 10, 11, 12]) parser.registerOscHandler(code, (data) => muted() && data.includes('?'))
  }
}
