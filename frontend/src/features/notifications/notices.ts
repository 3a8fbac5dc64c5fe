import type { SessionBook } from '@/api/book'
import type { Session } from '@/api/types.gen'
import { announcedEnd } from '@/lib/idle'
import type { Phrase } from '@/lib/phrases'
import { isLive, statusFamily } from '@/lib/status'

/** What is kept of a session's course for the drawer; one for each session. */
export interface Notice {
  /** Id of the session. */
  id: string
  name: string
  type: Session['type']
  status: Session['status']
  reason: Session['reason']
  exitCode: number | null
  /** It ended, and not in success. Those from before it was told say nothing. */
  failed?: boolean
  /** One sentence of its error, if it has one. */
  message: string
  /** That sentence for other languages; none in what was kept before it was told. */
  said?: Phrase[]
  /** When it last changed, in ms since 1970. */
  at: number
  read: boolean
  /** Its launch has a card in the dock. */
  open: boolean
  /** When it is reclaimed, in ms since 1970, once that is announced. */
  endsAt?: number | undefined
}

/** How many the drawer keeps. */
export const kept = 100

function noticeOf(session: Session, at: number, open: boolean): Notice {
  const { id, name, type, status, reason, exitCode } = session
  return {
    id,
    name,
    type,
    status,
    reason,
    exitCode,
    failed: session.result === 'failure',
    message: session.error?.message ?? '',
    said: session.error?.said,
    at,
    read: false,
    open,
    endsAt: announcedEnd(session)?.at,
  }
}

function update(notice: Notice, session: Session, at: number): Notice {
  const message = session.error?.message ?? ''
  const endsAt = announcedEnd(session)?.at
  const same = notice.status === session.status && notice.name === session.name && notice.message === message
  if (same && notice.endsAt === endsAt) return notice
  const turned = statusFamily(notice.status) !== statusFamily(session.status)
  const news = turned || (endsAt !== undefined && notice.endsAt === undefined)
  return {
    ...noticeOf(session, news ? at : notice.at, notice.open || (turned && !isLive(session.status))),
    read: notice.read && !news,
  }
}

/**
 * Whether a change of a session that has no notice deserves one. A session that
 * was not in the book is new if it was made after all that were, though it may
 * have ended already; an older one merely had not been fetched.
 */
function worthTelling(before: Session | undefined, after: Session, newest: string): boolean {
  // A service launches and replaces its replicas by itself, and says itself what is wrong with them.
  if (after.type === 'inference') return false
  if (!before) return after.createdAt >= newest
  if (announcedEnd(after) && !announcedEnd(before)) return true
  const family = statusFamily(after.status)
  return statusFamily(before.status) !== family && family !== 'preparing' && family !== 'ending'
}

/** When the last session of each machine ended that a page has seen, in ms since 1970 by the clock of the machine. */
export type LastEnds = Readonly<Record<string, number>>

/** The same object if no session has ended since. */
export function lastEnds(known: LastEnds, book: SessionBook): LastEnds {
  const later: Record<string, number> = {}
  for (const { agent, terminatedAt = '' } of Object.values(book)) {
    const at = Date.parse(terminatedAt)
    if (at > (later[agent] ?? known[agent] ?? 0)) later[agent] = at
  }
  return Object.keys(later).length > 0 ? { ...known, ...later } : known
}

/** Whether a session was reclaimed while no page was open. Of a machine that is new nothing is known. */
function missed({ agent, terminatedAt, error }: Session, ends: LastEnds): boolean {
  const last = ends[agent]
  return error?.code === 'session_run_reclaimed' && last !== undefined && Date.parse(terminatedAt ?? '') > last
}

/**
 * Follows the book from one state to the next: a session that appears gets a
 * card, one that has a notice changes it in place, one that turns gets one.
 * Of the first book only what was reclaimed since the last page is news, and what is about to be.
 */
export function nextNotices(
  notices: Notice[],
  before: SessionBook | undefined,
  after: SessionBook,
  at: number,
  ends: LastEnds = {},
): Notice[] {
  let changed = false
  const known = new Set<string>()
  const next = notices.map((notice) => {
    known.add(notice.id)
    const session = after[notice.id]
    const updated = session && session !== before?.[notice.id] ? update(notice, session, at) : notice
    changed ||= updated !== notice
    return updated
  })
  if (!before) {
    const news = Object.values(after).filter((s) => !known.has(s.id) && (announcedEnd(s) || missed(s, ends)))
    next.unshift(...news.map((s) => noticeOf(s, Date.parse(s.terminatedAt ?? '') || at, false)))
    changed ||= news.length > 0
  } else {
    const newest = Object.values(before).reduce((max, s) => (s.createdAt > max ? s.createdAt : max), '')
    for (const session of Object.values(after)) {
      if (known.has(session.id) || session === before[session.id] || !worthTelling(before[session.id], session, newest))
        continue
      next.unshift(noticeOf(session, at, before[session.id]?.status !== session.status))
      changed = true
    }
  }
  if (!changed) return notices
  return next.sort((a, b) => b.at - a.at).slice(0, kept)
}
