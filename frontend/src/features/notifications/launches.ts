import type { SessionBook } from '@/api/book'
import type { Session } from '@/api/types.gen'
import { isLive, statusFamily } from '@/lib/status'
import type { Notice } from './notices'

/** What was launched at once: one session, or several of one launch. It has one card in the dock. */
export interface Launch {
  key: string
  /** Of the session, or what the names of all have in common. */
  name: string
  /** In the order of their names. */
  sessions: Session[]
  /** When the last of them changed, in ms since 1970. */
  at: number
}

const byName = new Intl.Collator(undefined, { numeric: true })

/** The name of a launch: "swarm" of swarm-1 and swarm-2; that of the first session where each has its own. */
export function nameOf(sessions: readonly Session[]): string {
  const first = sessions[0]?.name ?? ''
  if (sessions.length < 2) return first
  const base = first.replace(/-\d+$/, '')
  return sessions.every(({ name }) => name.startsWith(`${base}-`)) ? base : first
}

/** The launches of which a notice is open, the newest first. */
export function launchesOf(notices: readonly Notice[], book: SessionBook): Launch[] {
  const launches = new Map<string, Launch>()
  for (const { id, open, at } of notices) {
    const session = book[id]
    const key = session?.launch || id
    if (!open || !session || launches.has(key)) continue
    const sessions = session.launch ? Object.values(book).filter((s) => s.launch === key) : [session]
    sessions.sort((a, b) => byName.compare(a.name, b.name))
    launches.set(key, { key, name: nameOf(sessions), sessions, at })
  }
  return [...launches.values()]
}

/** What is said first of several: what went wrong, then what is still to come, in the order of a session's life. */
const order = [
  'ERROR',
  'PULLING',
  'PREPARING',
  'PREPARED',
  'CREATING',
  'SCHEDULED',
  'PENDING',
  'TERMINATING',
  'RUNNING',
  'CANCELLED',
  'TERMINATED',
]

/** A cluster counts with each of its containers. */
function statusesOf({ status, kernels, spec }: Session): string[] {
  const size = Math.max(kernels.length, spec.cluster ?? 1)
  const apart = kernels.length === size && ['CREATING', 'RUNNING'].includes(status)
  return apart ? kernels.map((k) => k.status) : Array.from({ length: size }, () => status)
}

/** "4 of 6 pulling": a status, and how many of the containers of a launch are in it. */
export interface Tally {
  status: string
  count: number
  total: number
}

export function tallyOf({ sessions }: Launch): Tally {
  const all = sessions.flatMap(statusesOf)
  const status = order.find((s) => all.includes(s)) ?? all[0] ?? 'PENDING'
  return { status, count: all.filter((s) => s === status).length, total: all.length }
}

/**
 * When the card of a launch closes by itself, in ms since 1970: once all of it runs or has ended, later where
 * something went wrong or was reclaimed. Undefined while something is still to come.
 */
export function closesAt({ sessions, at }: Launch): number | undefined {
  if (sessions.some((s) => !['running', 'ended', 'cancelled', 'failed'].includes(statusFamily(s.status)))) return
  const short = sessions.every((s) => !isLive(s.status) && !s.error && s.result !== 'failure')
  return at + (short ? 5_000 : 30_000)
}
