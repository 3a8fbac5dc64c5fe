import type { Page, WebSocket } from 'playwright-core'
import { eventually } from './program'

interface Frame {
  offset: number
  bytes: Buffer
}

/** The numbers of the lines that consist of a word and a number. */
export const numbers = (text: string, word: string) =>
  [...text.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map((m) => Number(m[1]))

/** 1, 2 … n. */
export const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

/** Wire sees what travels between a page and its shells, over all connections. */
export class Wire {
  /** Addresses of the connections in their order. */
  readonly attached: string[] = []
  /** How often bytes were declared gone. */
  gaps = 0
  readonly #frames = new Map<string, Frame[]>() // by the shell's id

  constructor(page: Page) {
    page.on('websocket', (socket) => this.#listen(socket))
  }

  #listen(socket: WebSocket): void {
    const shell = /\/terminals\/([^/]+)\/attach/.exec(socket.url())?.[1]
    if (!shell) return
    this.attached.push(socket.url())
    const frames = this.#frames.get(shell) ?? []
    this.#frames.set(shell, frames)
    socket.on('framereceived', ({ payload }) => {
      const frame = Buffer.from(payload as Buffer)
      if (frame[0] === 0x44) frames.push({ offset: Number(frame.readBigUInt64BE(1)), bytes: frame.subarray(9) })
      if (frame[0] === 0x47) this.gaps += 1
    })
  }

  /** The output of a shell from the first byte seen, each byte once; fails where bytes are missing. */
  output(shell: string): Buffer {
    const frames = this.#frames.get(shell) ?? []
    const parts: Buffer[] = []
    let end = frames[0]?.offset ?? 0
    for (const { offset, bytes } of frames) {
      if (offset > end) throw new Error(`bytes ${end} to ${offset} are missing`)
      if (offset + bytes.length <= end) continue
      parts.push(bytes.subarray(end - offset))
      end = offset + bytes.length
    }
    return Buffer.concat(parts)
  }
}

/** ShellPage is the terminal as a person uses it. */
export class ShellPage {
  readonly page: Page
  readonly wire: Wire

  constructor(page: Page, wire = new Wire(page)) {
    this.page = page
    this.wire = wire
  }

  get screen() {
    return this.page.locator('[data-active="true"] .xterm-screen')
  }

  /** Waits until a shell is live and its prompt is on the screen. */
  async ready(): Promise<void> {
    await this.live()
    await eventually('the shell shows a prompt', async () => /[$#]$/.test((await this.rows()).trimEnd()))
  }

  async live(): Promise<void> {
    await this.page.locator('[data-active="true"][data-state="live"]').waitFor()
  }

  /** Types a line. */
  async type(line: string): Promise<void> {
    await this.page.locator('[data-active="true"] .xterm-helper-textarea').focus()
    await this.page.keyboard.type(line)
    await this.page.keyboard.press('Enter')
  }

  /** Runs a command and waits until it is over; its output is on the screen then. */
  async run(command: string, limit = 120_000): Promise<void> {
    const mark = `end-${Math.random().toString(36).slice(2, 10)}`
    // The mark is put together by the shell, so that its echo is not taken for it.
    await this.type(`${command}; printf '%s-%s\\n' ${mark.slice(0, 3)} ${mark.slice(4)}`)
    await this.saw(mark, limit)
  }

  /** Waits until the shell has printed something. */
  async saw(text: string, limit = 120_000): Promise<void> {
    await eventually(`the shell prints ${text}`, async () => (await this.output()).includes(text), limit)
    await eventually(`the screen shows ${text}`, async () => (await this.rows()).includes(text), limit)
  }

  /** What the shell that is shown has printed since the page was opened. */
  async output(): Promise<Buffer> {
    const id = await this.page.locator('[data-active="true"]').getAttribute('data-testid')
    return this.wire.output((id ?? '').replace('shell-', ''))
  }

  /** The lines that the window shows. */
  async rows(): Promise<string> {
    return this.page.locator('[data-active="true"] .xterm-rows').innerText()
  }

  /** Everything that the terminal holds, by the keys a person copies with. */
  async everything(): Promise<string> {
    await this.page.evaluate(() => navigator.clipboard.writeText(''))
    await this.page.locator('[data-active="true"] .xterm-helper-textarea').focus()
    await this.page.keyboard.press('Control+Shift+A')
    await this.page.keyboard.press('Control+Shift+C')
    return eventually(
      'the text is on the clipboard',
      async () => (await this.page.evaluate(() => navigator.clipboard.readText())) || undefined,
    )
  }
}
