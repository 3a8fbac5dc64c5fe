import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Attachment, type AttachmentState } from './attachment'
import { ScriptedShell } from './shellScript'

/** What a viewer has seen of a shell. */
class Viewer {
  shown: number[] = []
  replayed = 0
  gaps: [number, number][] = []
  states: string[] = []
  unparsed: (() => void)[] = []
  readonly attachment: Attachment

  constructor(
    shell: ScriptedShell,
    options: { offset?: number; replayUntil?: number; parse?: boolean; exists?: boolean } = {},
  ) {
    this.attachment = new Attachment({
      open: (offset) => shell.open(offset),
      exists: () => Promise.resolve(options.exists ?? true),
      offset: options.offset ?? 0,
      replayUntil: options.replayUntil ?? 0,
      events: {
        output: (bytes, replayed, done) => {
          this.shown.push(...bytes)
          if (replayed) this.replayed += bytes.length
          if (options.parse === false) this.unparsed.push(done)
          else done()
        },
        modes: () => {},
        gap: (from, to) => this.gaps.push([from, to]),
        size: () => {},
        state: (state: AttachmentState, code) => this.states.push(code === null ? state : `${state} ${code}`),
      },
    })
  }
}

const bytes = (n: number, seed = 7) => Array.from({ length: n }, (_, i) => (i * 31 + seed * (i >> 8)) & 255)
const typed = (text: string) => new TextEncoder().encode(text)
const next = () => vi.advanceTimersByTimeAsync(4000)

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

describe('output', () => {
  it('goes on at the byte after the last one, wherever the connection is cut', async () => {
    const shell = new ScriptedShell()
    shell.piece = 777
    const all = bytes(50_000)
    const viewer = new Viewer(shell)
    for (let cut = 0; cut < 40; cut += 1) {
      shell.socket.accept()
      shell.print(all.slice(cut * 1250, (cut + 1) * 1250))
      for (let i = 0; i < cut % 3; i += 1) shell.socket.step()
      shell.socket.cut()
      await next()
    }
    shell.socket.accept()
    while (shell.socket.step());
    expect(viewer.shown).toEqual(all)
    expect(viewer.attachment.received).toBe(50_000)
    expect(shell.sockets).toHaveLength(41)
  })

  it('shows bytes once that arrive twice', () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.print(bytes(100))
    shell.socket.accept()
    shell.socket.step()
    shell.socket.repeat(40, 100)
    shell.print([1, 2, 3])
    shell.socket.repeat(90, 103)
    expect(viewer.shown).toEqual([...bytes(100), 1, 2, 3])
  })

  it('asks again for bytes that are missing without a gap being declared', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.print(bytes(100))
    shell.socket.accept()
    shell.socket.repeat(50, 100)
    expect(viewer.shown).toEqual([])
    await next()
    shell.socket.accept()
    shell.socket.step()
    expect(viewer.shown).toEqual(bytes(100))
  })

  it('tells of the bytes that the cap has dropped, exactly', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.print(bytes(100))
    shell.socket.accept()
    shell.socket.step()
    shell.socket.cut()
    shell.print(bytes(900))
    shell.forget(400)
    await next()
    shell.socket.accept()
    shell.socket.step()
    expect(viewer.gaps).toEqual([[100, 400]])
    expect(viewer.shown).toEqual([...bytes(100), ...bytes(900).slice(300)])
  })

  it('is acknowledged when it is parsed, not when it arrives', () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell, { parse: false })
    shell.print(new Uint8Array(1024 * 1024))
    shell.socket.accept()
    while (shell.socket.step());
    expect(viewer.shown).toHaveLength(512 * 1024)
    expect(shell.acks).toEqual([])
    while (viewer.unparsed.length > 0) {
      viewer.unparsed.shift()?.()
      while (shell.socket.step());
    }
    expect(viewer.shown).toHaveLength(1024 * 1024)
    expect(shell.acks.at(-1)).toBe(1024 * 1024)
    expect(shell.acks.length).toBeLessThan(20)
  })

  it('marks as replayed what lay there before, to the byte', () => {
    const shell = new ScriptedShell()
    shell.print(bytes(1000))
    const viewer = new Viewer(shell, { replayUntil: 700 })
    shell.socket.accept()
    while (shell.socket.step());
    expect(viewer.replayed).toBe(700)
    expect(viewer.shown).toEqual(bytes(1000))
  })
})

describe('input', () => {
  it('arrives once and in order when acknowledgements are lost', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    const want: number[] = []
    for (let cut = 0; cut < 30; cut += 1) {
      shell.silent = cut % 3 === 1
      shell.socket.accept()
      const line = typed(`line ${cut}: ${'x'.repeat(cut * 7)}\r`)
      want.push(...line)
      viewer.attachment.input(line)
      if (cut % 2 === 0) viewer.attachment.input(typed('y'))
      if (cut % 2 === 0) want.push('y'.charCodeAt(0))
      shell.socket.cut()
      viewer.attachment.input(typed('while away;'))
      want.push(...typed('while away;'))
      await next()
    }
    shell.silent = false
    shell.socket.accept()
    expect(new TextDecoder().decode(new Uint8Array(shell.input))).toBe(new TextDecoder().decode(new Uint8Array(want)))
  })

  it('of any size is sent in pieces within the window', () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.silent = true
    shell.socket.accept()
    const paste = new Uint8Array(bytes(400_000))
    viewer.attachment.input(paste)
    expect(shell.input).toHaveLength(256 * 1024)
    shell.silent = false
    shell.socket.cut()
    return next().then(() => {
      shell.socket.accept()
      expect(shell.input).toHaveLength(400_000)
      expect(new Uint8Array(shell.input)).toEqual(paste)
    })
  })

  it("goes on from the shell's count when the shell has forgotten this viewer", async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.socket.accept()
    viewer.attachment.input(typed('abc'))
    shell.socket.cut()
    shell.accepted = 0
    viewer.attachment.input(typed('def'))
    await next()
    shell.socket.accept()
    expect(new TextDecoder().decode(new Uint8Array(shell.input))).toBe('abcdef')
  })
})

describe('connection', () => {
  it('repeats the wanted size on every connection', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    viewer.attachment.resize(120, 40)
    shell.socket.accept()
    shell.socket.cut()
    await next()
    shell.socket.accept()
    expect(shell.sizes).toEqual([
      [120, 40],
      [120, 40],
    ])
  })

  it('tries again with growing waits while the server does not answer, then goes on', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.socket.accept()
    shell.refuse = true
    shell.socket.cut()
    for (let i = 0; i < 8; i += 1) {
      await next()
      shell.socket.accept()
    }
    const attempts = shell.sockets.length
    shell.refuse = false
    await vi.advanceTimersByTimeAsync(1000)
    expect(shell.sockets.length).toBe(attempts)
    await next()
    shell.socket.accept()
    expect(viewer.states).toEqual(['live', 'reconnecting', 'live'])
  })

  it('does not hammer a server that greets and hangs up', async () => {
    const shell = new ScriptedShell()
    new Viewer(shell)
    for (let i = 0; i < 60; i += 1) {
      if (!shell.socket.closed) {
        shell.socket.accept()
        shell.socket.cut()
      }
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(shell.sockets.length).toBeLessThan(8)
  })

  it('ends when the shell is gone', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell, { exists: false })
    shell.refuse = true
    shell.socket.accept()
    await next()
    expect(viewer.states).toEqual(['reconnecting', 'gone'])
    expect(shell.sockets).toHaveLength(1)
  })

  it("ends with the shell's exit code after all of its output", async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.print(bytes(10))
    shell.socket.accept()
    shell.socket.step()
    shell.socket.end(-9)
    shell.socket.cut()
    await next()
    expect(viewer.shown).toEqual(bytes(10))
    expect(viewer.states).toEqual(['live', 'exited -9'])
    expect(shell.sockets).toHaveLength(1)
  })

  it('does nothing after it was closed', async () => {
    const shell = new ScriptedShell()
    const viewer = new Viewer(shell)
    shell.socket.accept()
    shell.socket.cut()
    viewer.attachment.close()
    await next()
    expect(shell.sockets).toHaveLength(1)
    expect(viewer.attachment.state).toBe('closed')
  })
})
