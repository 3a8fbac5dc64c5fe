import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EventChannel, type Connection, type Socket } from './events'
import type { Event } from './types.gen'

class FakeSocket implements Socket {
  onopen: (() => void) | null = null
  onmessage: ((message: { data: unknown }) => void) | null = null
  onclose: ((reason: { code: number }) => void) | null = null
  closed = false
  constructor(readonly url: string) {}
  close(): void {
    this.closed = true
  }
  say(event: Partial<Event>): void {
    this.onmessage?.({ data: JSON.stringify(event) })
  }
}

const snapshot = { sessions: [], machines: [], recents: [], settings: {}, version: {} } as unknown as Event['snapshot']

function start() {
  const sockets: FakeSocket[] = []
  const events: Event[] = []
  const states: Connection[] = []
  const channel = new EventChannel({
    url: () => 'ws://here/events',
    open: (url) => {
      const socket = new FakeSocket(url)
      sockets.push(socket)
      return socket
    },
    onEvent: (event) => events.push(event),
    onConnection: (connection) => states.push(connection),
    maxDelay: 1000,
  })
  channel.start()
  return { channel, sockets, events, states, last: () => sockets.at(-1)! }
}

describe('EventChannel', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  it('asks for everything at first and for what follows afterwards', () => {
    const { sockets, events, last } = start()
    expect(last().url).toBe('ws://here/events')
    last().say({ epoch: 'e1', seq: 7, snapshot })
    last().say({ epoch: 'e1', seq: 8, removed: 'x' })
    last().onclose?.({ code: 1006 })
    vi.advanceTimersByTime(250)
    expect(sockets).toHaveLength(2)
    expect(last().url).toBe('ws://here/events?epoch=e1&after=8')
    last().say({ epoch: 'e1', seq: 9, removed: 'y' })
    expect(events.map((e) => e.seq)).toEqual([7, 8, 9])
  })

  it('forgets where it was and starts afresh when a number is missing', () => {
    const { events, last } = start()
    last().say({ epoch: 'e1', seq: 1, snapshot })
    last().say({ epoch: 'e1', seq: 3, removed: 'x' })
    expect(events).toHaveLength(1)
    vi.advanceTimersByTime(250)
    expect(last().url).toBe('ws://here/events')
  })

  it('starts afresh when the server is another one', () => {
    const { last } = start()
    last().say({ epoch: 'e1', seq: 1, snapshot })
    last().say({ epoch: 'e2', seq: 2, removed: 'x' })
    vi.advanceTimersByTime(250)
    expect(last().url).toBe('ws://here/events')
  })

  it('waits longer after each failure, up to its limit, and briefly again after success', () => {
    const { sockets, last } = start()
    const gaps: number[] = []
    for (let i = 0; i < 4; i++) {
      const before = sockets.length
      last().onclose?.({ code: 1006 })
      let waited = 0
      while (sockets.length === before) {
        vi.advanceTimersByTime(50)
        waited += 50
      }
      gaps.push(waited)
    }
    expect(gaps).toEqual([250, 500, 1000, 1000])
    last().say({ epoch: 'e', seq: 1, snapshot })
    last().onclose?.({ code: 1006 })
    vi.advanceTimersByTime(250)
    expect(sockets).toHaveLength(6)
  })

  it('gives up on a socket that neither opens nor closes', () => {
    const { sockets } = start()
    vi.advanceTimersByTime(10_000)
    expect(sockets[0]?.closed).toBe(true)
    vi.advanceTimersByTime(250)
    expect(sockets).toHaveLength(2)
  })

  it('says since when it is lost until it is open again', () => {
    const { states, last } = start()
    last().onopen?.()
    expect(states.at(-1)).toMatchObject({ state: 'open', lostAt: 0 })
    const lostAt = Date.now()
    last().onclose?.({ code: 1006 })
    vi.advanceTimersByTime(250)
    last().onclose?.({ code: 1006 })
    expect(states.at(-1)).toMatchObject({ state: 'lost', lostAt })
  })

  it('tries at once when told to', () => {
    const { channel, sockets, last } = start()
    last().onclose?.({ code: 1006 })
    channel.retryNow()
    expect(sockets).toHaveLength(2)
    channel.retryNow()
    expect(sockets).toHaveLength(2)
  })

  it('opens nothing more once stopped', () => {
    const { channel, sockets, last } = start()
    const socket = last()
    channel.stop()
    expect(socket.closed).toBe(true)
    vi.advanceTimersByTime(60_000)
    expect(sockets).toHaveLength(1)
  })
})
