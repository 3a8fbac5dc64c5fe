import { decodeFrame, encodeAck, encodeInput, encodeResize, type ServerFrame } from './frames'
import { Outbox } from './outbox'

/** The part of a WebSocket that an attachment needs; tests bring their own. */
export interface Socket {
  binaryType: BinaryType
  onopen: ((event: Event) => void) | null
  onmessage: ((event: MessageEvent) => void) | null
  onclose: ((event: CloseEvent) => void) | null
  send(data: ArrayBuffer): void
  close(): void
}

/** How an attachment stands. */
export type AttachmentState = 'connecting' | 'live' | 'reconnecting' | 'exited' | 'gone' | 'closed'

interface AttachmentEvents {
  /** Output to show. done is called when it has been parsed. */
  output(bytes: Uint8Array, replayed: boolean, done: () => void): void
  /** Escape sequences that restore the screen's modes; they have no offset. */
  modes(bytes: Uint8Array): void
  /** These bytes are gone for ever: the cap has dropped them. */
  gap(from: number, to: number): void
  size(cols: number, rows: number): void
  state(state: AttachmentState, exitCode: number | null): void
}

interface AttachmentConfig {
  /** Opens a socket that begins at offset. */
  open(offset: number): Socket
  /** Asked when the server refused or was not reached: does the shell still exist? */
  exists(): Promise<boolean>
  /** First output byte wanted; what lies before is not asked for. */
  offset: number
  /** Bytes before this offset were shown to someone before: programs' questions in them have been answered. */
  replayUntil: number
  events: AttachmentEvents
}

/** Waits between attempts, in milliseconds; the last one repeats. */
const BACKOFF = [0, 250, 500, 1000, 2000, 4000]

/** An acknowledgement is sent after this many parsed bytes, and when all is parsed. */
const ACK_EVERY = 64 * 1024

/**
 * Attachment follows one shell over as many connections as it takes. Output
 * goes on at the byte after the last received one and input at the byte after
 * the last accepted one, so a cut neither loses nor doubles any.
 */
export class Attachment {
  readonly #config: AttachmentConfig
  readonly #outbox = new Outbox()
  #socket: Socket | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #state: AttachmentState = 'connecting'
  #greeted = false // the connection at hand has said hello
  #progress = false // the connection at hand has carried something
  #failures = 0
  #received: number
  #parsed: number
  #acked: number
  #wanted: { cols: number; rows: number } | null = null

  constructor(config: AttachmentConfig) {
    this.#config = config
    this.#received = this.#parsed = this.#acked = config.offset
    this.#connect()
  }

  get state(): AttachmentState {
    return this.#state
  }

  /** Offset after the last received output byte. */
  get received(): number {
    return this.#received
  }

  /** Types bytes into the shell, at once or as soon as it is reached again. */
  input(bytes: Uint8Array): void {
    if (this.#ended()) return
    this.#outbox.add(bytes)
    this.#flush()
  }

  /** Asks for a size; it is repeated on every new connection. */
  resize(cols: number, rows: number): void {
    this.#wanted = { cols, rows }
    if (this.#greeted) this.#socket?.send(encodeResize(cols, rows))
  }

  /** Tries now rather than when the wait is over. */
  retry(): void {
    if (this.#state !== 'reconnecting' || this.#socket) return
    clearTimeout(this.#timer)
    this.#connect()
  }

  /** Stops looking. The shell goes on. */
  close(): void {
    clearTimeout(this.#timer)
    this.#drop()
    if (!this.#ended()) this.#become('closed')
  }

  #ended(): boolean {
    return this.#state === 'exited' || this.#state === 'gone' || this.#state === 'closed'
  }

  #become(state: AttachmentState, exitCode: number | null = null): void {
    if (this.#state === state) return
    this.#state = state
    this.#config.events.state(state, exitCode)
  }

  #connect(): void {
    const socket = this.#config.open(this.#received)
    this.#socket = socket
    this.#greeted = false
    this.#progress = false
    socket.binaryType = 'arraybuffer'
    socket.onmessage = (event) => {
      if (socket === this.#socket) this.#message(event.data as ArrayBuffer)
    }
    socket.onclose = () => {
      if (socket === this.#socket) this.#lost()
    }
  }

  #drop(): void {
    const socket = this.#socket
    this.#socket = null
    this.#greeted = false
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  #lost(): void {
    const greeted = this.#greeted
    this.#drop()
    if (this.#ended()) return
    this.#become('reconnecting')
    if (greeted) {
      if (this.#progress) this.#failures = 0
      this.#wait()
      return
    }
    this.#config.exists().then(
      (exists) => {
        if (this.#ended() || this.#socket) return
        if (exists) this.#wait()
        else this.#become('gone')
      },
      () => this.#wait(),
    )
  }

  #wait(): void {
    if (this.#ended() || this.#socket) return
    const delay = BACKOFF[Math.min(this.#failures, BACKOFF.length - 1)]
    this.#failures += 1
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connect(), delay)
  }

  #message(data: ArrayBuffer): void {
    let frame: ServerFrame
    try {
      frame = decodeFrame(data)
    } catch {
      this.#lost()
      return
    }
    switch (frame.kind) {
      case 'hello':
        this.#hello(frame)
        break
      case 'data':
        this.#data(frame.offset, frame.bytes)
        break
      case 'gap':
        this.#gap(frame.from, frame.to)
        break
      case 'modes':
        this.#config.events.modes(frame.bytes)
        break
      case 'ack':
        this.#progress = true
        this.#outbox.acknowledge(frame.accepted)
        this.#flush()
        break
      case 'size':
        this.#config.events.size(frame.cols, frame.rows)
        break
      case 'exit':
        this.#become('exited', frame.code)
        this.#drop()
        break
    }
  }

  #hello(hello: Extract<ServerFrame, { kind: 'hello' }>): void {
    this.#greeted = true
    this.#outbox.resume(hello.accepted)
    this.#acked = Math.max(this.#acked, this.#received)
    if (this.#wanted) this.#socket?.send(encodeResize(this.#wanted.cols, this.#wanted.rows))
    else this.#config.events.size(hello.cols, hello.rows)
    this.#become('live')
    this.#flush()
  }

  #data(offset: number, bytes: Uint8Array): void {
    if (offset > this.#received) {
      this.#lost() // bytes are missing that nobody declared gone: ask for them again
      return
    }
    const fresh = bytes.subarray(Math.min(bytes.length, this.#received - offset))
    const old = Math.max(0, Math.min(fresh.length, this.#config.replayUntil - this.#received))
    this.#show(fresh.subarray(0, old), true)
    this.#show(fresh.subarray(old), false)
  }

  #show(bytes: Uint8Array, replayed: boolean): void {
    if (bytes.length === 0) return
    this.#progress = true
    this.#received += bytes.length
    const end = this.#received
    this.#config.events.output(bytes, replayed, () => this.#shown(end))
  }

  #gap(from: number, to: number): void {
    if (to <= this.#received) return
    this.#config.events.gap(Math.max(from, this.#received), to)
    this.#received = to
  }

  #shown(offset: number): void {
    this.#parsed = Math.max(this.#parsed, offset)
    const due = this.#parsed - this.#acked >= ACK_EVERY || this.#parsed === this.#received
    if (!this.#greeted || !due || this.#parsed <= this.#acked) return
    this.#acked = this.#parsed
    this.#socket?.send(encodeAck(this.#parsed))
  }

  #flush(): void {
    while (this.#greeted) {
      const piece = this.#outbox.next()
      if (!piece) return
      this.#socket?.send(encodeInput(piece.offset, piece.bytes))
    }
  }
}
