import type { SessionBook } from '@/api/book'
import type { Session } from '@/api/types.gen'
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
  /** Its card is at the bottom right. */
  open: boolean
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
  }
}

function update(notice: Notice, session: Session, at: number): Notice {
  const message = session.error?.message ?? ''
  if (notice.status === session.status && notice.name === session.name && notice.message === message) return notice
  const turned = statusFamily(notice.status) !== statusFamily(session.status)
  return {
    ...noticeOf(session, turned ? at : notice.at, notice.open || (turned && !isLive(session.status))),
    read: notice.read && !turned,
  }
}

/**
 * Whether a change of a session that has no notice deserves one. A session that
 * was not in the book is new if it was made after all that were, though it may
 * have ended already; an older one merely had not been fetched.
 */
function worthTelling(before: Session | undefined, after: Session, newest: string): boolean {
  if (!before) return after.createdAt >= newest
  const family = statusFamily(after.status)
  return statusFamily(before.status) !== family && family !== 'preparing' && family !== 'ending'
}

/**
 * Follows the book from one state to the next: a session that appears gets a
 * card, one that has a notice changes it in place, one that turns gets one.
 * The first book ever seen is no news.
 */
export function nextNotices(
  notices: Notice[],
  before: SessionBook | undefined,
  after: SessionBook,
  at: number,
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
  if (before) {
    const newest = Object.values(before).reduce((max, s) => (s.createdAt > max ? s.createdAt : max), '')
    for (const session of Object.values(after)) {
      if (known.has(session.id) || session === before[session.id] || !worthTelling(before[session.id], session, newest))
        continue
      next.unshift(noticeOf(session, at, true))
      changed = true
    }
  }
  if (!changed) return notices
  return next.sort((a, b) => b.at - a.at).slice(0, kept)
}
