import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import type { Session } from '@/api/types.gen'
import { kept, lastEnds, nextNotices, type Notice } from './notices'

const pending = makeSession({ id: 'a', name: 'one', status: 'PENDING' })
const running = makeSession({ id: 'a', name: 'one', status: 'RUNNING' })
const ended = makeSession({ id: 'a', name: 'one', status: 'TERMINATED', reason: 'task-finished' })

function course(...books: (typeof pending)[][]): Notice[] {
  let notices: Notice[] = []
  let before: Record<string, typeof pending> | undefined
  books.forEach((sessions, i) => {
    const after = Object.fromEntries(sessions.map((s) => [s.id, s]))
    notices = nextNotices(notices, before, after, i)
    before = after
  })
  return notices
}

describe('an end by idle checks', () => {
  const idle = [
    { checker: 'lifetime', state: 'idle', expiresAt: '2026-01-02T04:00:00Z', message: '', metrics: [], checkedAt: '' },
  ] as Session['idle']
  const warnings = [{ code: 'session_idle_lifetime' as const, title: '', text: '', at: '' }]
  const warned = { ...running, idle, warnings }
  const reclaimed = (id: string, terminatedAt: string) =>
    makeSession({
      ...ended,
      id,
      terminatedAt,
      error: { code: 'session_run_reclaimed', message: 'It was reclaimed.' },
    })

  it('is news when it is announced, when it is put off no more, and without a card', () => {
    const [told] = course([running], [warned])
    expect(told).toMatchObject({ read: false, open: false, endsAt: Date.parse('2026-01-02T04:00:00Z') })
    const read = [{ ...(told as Notice), read: true }]
    const [kept] = nextNotices(read, { a: warned }, { a: running }, 5)
    expect(kept).toMatchObject({ read: true, endsAt: undefined })
    expect(nextNotices([kept as Notice], { a: running }, { a: warned }, 6)[0]).toMatchObject({ read: false, at: 6 })
  })
  it('is news to a page that opens after it was announced, or since the last page was open', () => {
    expect(course([warned])).toMatchObject([{ id: 'a', endsAt: Date.parse('2026-01-02T04:00:00Z') }])
    const [seen, missed] = [reclaimed('seen', '2026-01-02T03:00:00Z'), reclaimed('missed', '2026-01-02T03:00:00.5Z')]
    const ends = lastEnds({}, { seen })
    expect(lastEnds(ends, { seen })).toBe(ends)
    expect(nextNotices([], undefined, { seen, missed }, 0, ends)).toMatchObject([
      {
        id: 'missed',
        message: 'It was reclaimed.',
        read: false,
        open: false,
        at: Date.parse('2026-01-02T03:00:00.5Z'),
      },
    ])
    const elsewhere = { ...missed, agent: 'lab' }
    expect(nextNotices([], undefined, { elsewhere }, 0, ends)).toEqual([])
  })
})

describe('nextNotices', () => {
  it('tells nothing of what was there when the page came up', () => expect(course([running])).toEqual([]))
  it('gives a session that appears one card and changes it in place', () => {
    const notices = course([], [pending], [running])
    expect(notices).toHaveLength(1)
    expect(notices[0]).toMatchObject({ id: 'a', status: 'RUNNING', open: true, at: 2 })
  })
  it('tells of the end of a session that was there before', () => {
    expect(course([running], [ended])[0]).toMatchObject({ status: 'TERMINATED', reason: 'task-finished', open: true })
  })
  it('opens a card again when its session ends', () => {
    const [card] = course([], [pending])
    const closed = [{ ...(card as Notice), open: false, read: true }]
    expect(nextNotices(closed, { a: running }, { a: ended }, 9)[0]).toMatchObject({ open: true, read: false, at: 9 })
  })
  it('does not open a dismissed card for a step on the way', () => {
    const [card] = course([], [pending])
    const closed = [{ ...(card as Notice), open: false }]
    expect(nextNotices(closed, { a: pending }, { a: { ...pending, status: 'SCHEDULED' } }, 9)[0]?.open).toBe(false)
  })
  it('says nothing of a finished session that is fetched late', () => {
    const older = { ...ended, id: 'older', createdAt: '2025-01-01T00:00:00Z' }
    expect(course([running], [running, older])).toEqual([])
  })
  it('tells of a session that was over before it was seen', () =>
    expect(course([], [ended])[0]).toMatchObject({ status: 'TERMINATED', open: true }))
  it('says nothing of a live session that is fetched late', () => {
    const old = makeSession({ id: 'old', status: 'RUNNING', createdAt: '2025-01-01T00:00:00Z' })
    expect(course([running], [running, old])).toEqual([])
  })
  it('returns the same list when nothing changed', () => {
    const notices = course([], [pending])
    expect(nextNotices(notices, { a: pending }, { a: pending }, 5)).toBe(notices)
  })
  it('keeps a hundred', () => {
    const many = Array.from({ length: kept + 20 }, (_, i) => makeSession({ id: `s${i}`, status: 'PENDING' }))
    expect(course([], many)).toHaveLength(kept)
  })
})

describe('a replica of a service', () => {
  it('is no news, whether it starts or fails', () => {
    const replica = (status: Session['status']) => makeSession({ id: 'r', type: 'inference', status })
    expect(course([], [replica('PENDING')], [replica('RUNNING')], [replica('ERROR')])).toEqual([])
  })
})
