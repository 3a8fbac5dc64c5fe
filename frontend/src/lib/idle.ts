// How close a session is to being reclaimed as idle, and the colour that says
// so. The legend of the interface is written from these same functions.

/** The part of a check that its colour depends on. An api IdleCheck fits. */
export interface IdleSubject {
  checker: string
  state: string
  expiresAt?: string
}

export type IdleTone = 'kept' | 'bad' | 'warn' | 'good' | 'none'

const hour = 3_600_000

/** Ends within 1 h: bad; within 4 h: warn; later: good. */
const toneLimits = { bad: hour, warn: 4 * hour } as const

interface IdleOutlook {
  tone: IdleTone
  /** The check that ends the session first; absent where none would. */
  check?: IdleSubject
  /** Milliseconds until then, never below 0. */
  left?: number
}

/**
 * Whether a check counts down: unknown means keep running, grace judges nothing yet, and a session in use starts the
 * clock of activity anew.
 */
export function countsDown(check: IdleSubject): boolean {
  if (!check.expiresAt || check.state === 'unknown' || check.state === 'grace') return false
  return !(check.checker === 'network' && check.state === 'active')
}

/** The check that would end a session first. */
export function firstEnd<T extends IdleSubject>(checks: readonly T[]): T | undefined {
  return checks.filter(countsDown).toSorted((a, b) => Date.parse(a.expiresAt ?? '') - Date.parse(b.expiresAt ?? ''))[0]
}

export function toneOfTime(left: number): IdleTone {
  if (left < toneLimits.bad) return 'bad'
  return left < toneLimits.warn ? 'warn' : 'good'
}

/** What the idle checks of a session come to at a moment, in ms since 1970. */
export function idleOutlook(checks: readonly IdleSubject[], keepUntil: string | undefined, now: number): IdleOutlook {
  const check = firstEnd(checks)
  const left = check?.expiresAt ? Math.max(0, Date.parse(check.expiresAt) - now) : undefined
  if (keepUntil && Date.parse(keepUntil) > now)
    return { tone: 'kept', left: Date.parse(keepUntil) - now, ...(check ? { check } : {}) }
  return check && left !== undefined ? { tone: toneOfTime(left), check, left } : { tone: 'none' }
}

/** The part of a session that its announced end depends on. An api Session fits. */
interface Endangered {
  status: string
  /** Its machine is not reached: what it said about an end is old. */
  lastHeard?: string
  idle: readonly IdleSubject[]
  warnings: readonly { code: string }[]
}

/** Why and when, in ms since 1970, a session is reclaimed unless it is kept. */
export interface AnnouncedEnd {
  checker: string
  at: number
}

/** The end of a session by its idle checks, once it is announced. */
export function announcedEnd({ status, lastHeard, idle, warnings }: Endangered): AnnouncedEnd | undefined {
  if (status !== 'RUNNING' || lastHeard || warnings.length === 0) return undefined
  const check = firstEnd(idle.filter((c) => warnings.some((w) => w.code === `session_idle_${c.checker}`)))
  return check?.expiresAt ? { checker: check.checker, at: Date.parse(check.expiresAt) } : undefined
}

/** How many hours it is until 9 o'clock of the next morning. */
export function hoursUntilTomorrow(now: number): number {
  const morning = new Date(now)
  morning.setDate(morning.getDate() + 1)
  morning.setHours(9, 0, 0, 0)
  return (morning.getTime() - now) / 3_600_000
}

/** Below the threshold: bad; below twice the threshold: warn; else good. */
export function toneOfMetric(average: number, threshold: number): 'bad' | 'warn' | 'good' {
  if (average < threshold) return 'bad'
  return average < 2 * threshold ? 'warn' : 'good'
}

/** The agent judges every session this often, in ms. */
const checkEvery = 15_000

/** Whether checks are on, or may be, that have not judged a session yet: it has just started, or the agent has. */
export function isUnjudged(
  checks: readonly IdleSubject[],
  policy: object | undefined,
  startedAt: string | undefined,
  now: number,
): boolean {
  if (checks.length > 0 || !startedAt) return false
  return (policy !== undefined && Object.keys(policy).length > 0) || now - Date.parse(startedAt) < checkEvery
}
