import type { Socket } from './attachment'

/**
 * A shell for tests that keeps the control plane's side of the attach protocol:
 * a spool under fixed offsets, input counted for each viewer, the window of
 * unacknowledged output. Its connections can be cut between any two frames.
 */
export class ScriptedShell {
  spool: number[] = []
  start = 0
  input: number[] = []
  acks: number[] = []
  sizes: [number, number][] = []
  sockets: ScriptedSocket[] = []
  accepted = 0
  refuse = false
  /** Acknowledgements of input are kept back. */
  silent = false
  window = 512 * 1024
  piece = 32 * 1024
  exit: number | null = null

  open(offset: number): Socket {
    const socket = new ScriptedSocket(this, offset)
    this.sockets.push(socket)
    return socket
  }

  get socket(): ScriptedSocket {
    const last = this.sockets.at(-1)
    if (!last) throw new Error('no connection was opened')
    return last
  }

  print(bytes: Iterable<number>): void {
    for (const byte of bytes) this.spool.push(byte)
  }

  get end(): number {
    return this.start + this.spool.length
  }

  /** Drops the oldest bytes, as the cap does. */
  forget(bytes: number): void {
    this.spool.splice(0, bytes)
    this.start += bytes
  }
}

class ScriptedSocket implements Socket {
  binaryType: BinaryType = 'blob'
  onopen: Socket['onopen'] = null
  onmessage: Socket['onmessage'] = null
  onclose: Socket['onclose'] = null
  closed = false
  at: number
  acked: number
  readonly #shell: ScriptedShell

  constructor(shell: ScriptedShell, offset: number) {
    this.#shell = shell
    this.at = offset
    this.acked = offset
  }

  /** Accepts the connection: hello, then what the window lets through. */
  accept(): void {
    const shell = this.#shell
    if (shell.refuse) {
      this.cut()
      return
    }
    const view = message('H', 36)
    view.setBigUint64(1, BigInt(shell.start))
    view.setBigUint64(9, BigInt(shell.end))
    view.setBigUint64(17, BigInt(Math.max(this.at, shell.start)))
    view.setBigUint64(25, BigInt(shell.accepted))
    view.setUint16(33, 80)
    view.setUint16(35, 24)
    this.deliver(view.buffer)
    if (this.at < shell.start) {
      const gap = message('G', 16)
      gap.setBigUint64(1, BigInt(this.at))
      gap.setBigUint64(9, BigInt(shell.start))
      this.deliver(gap.buffer)
      this.at = shell.start
    }
  }

  /** Sends one data frame if there is one and the window allows; reports whether. */
  step(): boolean {
    const shell = this.#shell
    const size = Math.min(shell.piece, shell.end - this.at, this.acked + shell.window - this.at)
    if (this.closed || size <= 0) return false
    const view = message('D', 8 + size)
    view.setBigUint64(1, BigInt(this.at))
    new Uint8Array(view.buffer, 9).set(shell.spool.slice(this.at - shell.start, this.at - shell.start + size))
    this.at += size
    this.deliver(view.buffer)
    return true
  }

  /** Repeats bytes that were sent before, as a careless server might. */
  repeat(from: number, to: number): void {
    const view = message('D', 8 + to - from)
    view.setBigUint64(1, BigInt(from))
    new Uint8Array(view.buffer, 9).set(this.#shell.spool.slice(from, to))
    this.deliver(view.buffer)
  }

  end(code: number): void {
    const view = message('X', 4)
    view.setInt32(1, code)
    this.deliver(view.buffer)
  }

  cut(): void {
    if (this.closed) return
    this.closed = true
    this.onclose?.(new CloseEvent('close'))
  }

  close(): void {
    this.closed = true
  }

  send(data: ArrayBuffer): void {
    if (this.closed) return
    const view = new DataView(data)
    const shell = this.#shell
    switch (String.fromCharCode(view.getUint8(0))) {
      case 'I':
        this.#typed(Number(view.getBigUint64(1)), new Uint8Array(data, 9))
        break
      case 'A':
        this.acked = Number(view.getBigUint64(1))
        shell.acks.push(this.acked)
        break
      case 'R':
        shell.sizes.push([view.getUint16(1), view.getUint16(3)])
        break
    }
  }

  #typed(offset: number, bytes: Uint8Array): void {
    const shell = this.#shell
    if (offset > shell.accepted) throw new Error(`input jumps from ${shell.accepted} to ${offset}`)
    const fresh = bytes.subarray(Math.min(bytes.length, shell.accepted - offset))
    shell.input.push(...fresh)
    shell.accepted += fresh.length
    if (shell.silent) return
    const view = message('K', 8)
    view.setBigUint64(1, BigInt(shell.accepted))
    this.deliver(view.buffer)
  }

  deliver(data: ArrayBuffer): void {
    if (!this.closed) this.onmessage?.(new MessageEvent('message', { data }))
  }
}

function message(type: string, size: number): DataView<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(1 + size))
  view.setUint8(0, type.charCodeAt(0))
  return view
}
