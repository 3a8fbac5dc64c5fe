import { now } from '@/lib/now'
import type { Event } from './types.gen'

/** How the page stands with the control plane. */
export type ConnectionState = 'connecting' | 'open' | 'lost'

export interface Connection {
  state: ConnectionState
  /** When the last message or successful connection was, in ms since 1970; 0 before the first. */
  heardAt: number
  /** Since when there has been no connection, in ms since 1970; 0 while open. */
  lostAt: number
}

/** The part of a WebSocket that the channel needs, so that tests can stand in for it. */
export interface Socket {
  onopen: (() => void) | null
  onmessage: ((message: { data: unknown }) => void) | null
  onclose: ((reason: { code: number }) => void) | null
  close(): void
}

interface EventChannelConfig {
  url: () => string
  open: (url: string) => Socket
  onEvent: (event: Event) => void
  onConnection: (connection: Connection) => void
  /** Longest pause between attempts, in ms. */
  maxDelay?: number
}

const firstDelay = 250
const socketPatience = 10_000

/**
 * One connection to /api/v1/events that is made again whenever it is lost. It
 * asks to go on after the last event seen; a gap in the numbers ends the
 * connection and asks for a fresh snapshot.
 */
export class EventChannel {
  private readonly config: EventChannelConfig
  private socket: Socket | null = null
  private epoch = ''
  private seq = 0
  private failures = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private patience: ReturnType<typeof setTimeout> | undefined
  private heardAt = 0
  private lostAt = 0
  private stopped = false

  constructor(config: EventChannelConfig) {
    this.config = config
  }

  start(): void {
    this.stopped = false
    this.connect()
  }

  stop(): void {
    this.stopped = true
    clearTimeout(this.timer)
    this.drop()
  }

  /** Tries at once instead of waiting for the next attempt; does nothing while connected. */
  retryNow(): void {
    if (this.stopped || this.socket) return
    clearTimeout(this.timer)
    this.connect()
  }

  private connect(): void {
    this.tell('connecting')
    const socket = this.config.open(this.address())
    this.socket = socket
    // A socket that neither opens nor closes would leave the page waiting for ever.
    this.patience = setTimeout(() => this.lost(socket), socketPatience)
    socket.onopen = () => {
      clearTimeout(this.patience)
      this.heardAt = now()
      this.lostAt = 0
      this.tell('open')
    }
    socket.onmessage = (message) => this.receive(socket, message.data)
    socket.onclose = () => this.lost(socket)
  }

  private address(): string {
    const base = this.config.url()
    if (!this.epoch) return base
    return `${base}?epoch=${encodeURIComponent(this.epoch)}&after=${this.seq}`
  }

  private receive(socket: Socket, data: unknown): void {
    if (socket !== this.socket || typeof data !== 'string') return
    const event = JSON.parse(data) as Event
    if (event.snapshot) {
      this.epoch = event.epoch
    } else if (event.epoch !== this.epoch || event.seq !== this.seq + 1) {
      this.forget()
      this.lost(socket)
      return
    }
    this.seq = event.seq
    this.heardAt = now()
    this.failures = 0
    this.config.onEvent(event)
  }

  private forget(): void {
    this.epoch = ''
    this.seq = 0
  }

  private lost(socket: Socket): void {
    if (socket !== this.socket) return
    this.drop()
    if (this.stopped) return
    const delay = Math.min(firstDelay * 2 ** this.failures, this.config.maxDelay ?? 5_000)
    this.failures++
    this.lostAt ||= now()
    this.tell('lost')
    this.timer = setTimeout(() => this.connect(), delay)
  }

  private drop(): void {
    clearTimeout(this.patience)
    const socket = this.socket
    this.socket = null
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  private tell(state: ConnectionState): void {
    this.config.onConnection({ state, heardAt: this.heardAt, lostAt: this.lostAt })
  }
}
