import { useMemo } from 'react'
import { useSessionBook } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { GIB } from './amount'
import type { Draft } from './draft'

/** What an earlier session like a draft used at most. */
export interface LastRun {
  session: Session
  /** Bytes that it used at one time, and that it had. */
  peak: number
  memory: number
}

/** What freeName adds to a name, and the number of one of several. */
const numbered = (name: string, of: string) =>
  name === of || (name.startsWith(`${of}-`) && /^-[a-z0-9]{1,4}$/.test(name.slice(of.length)))

/**
 * The newest finished session with the name of a draft, or else with its image and type, whose memory was measured. One
 * that failed is none: it may not have come far.
 */
export function lastRunOf({ name, image, type, command }: Draft, sessions: readonly Session[]): LastRun | null {
  const known = sessions.filter((s) => (s.peakMemory ?? 0) > 0 && s.result !== 'failure')
  const like = known.filter((s) => s.spec.image === image.trim() && s.type === type)
  const same = type === 'batch' ? like.filter((s) => (s.spec.command ?? '').trim() === command.trim()) : like
  const named = name === '' ? [] : known.filter((s) => numbered(s.name, name))
  const newest = (named.length > 0 ? named : same).toSorted((a, b) =>
    (b.terminatedAt ?? '').localeCompare(a.terminatedAt ?? ''),
  )[0]
  return newest ? { session: newest, peak: newest.peakMemory ?? 0, memory: newest.spec.resources.memory ?? 0 } : null
}

/** The last run of a draft among the sessions that are known. */
export function useLastRun(draft: Draft): LastRun | null {
  const sessions = useSessionBook().data
  return useMemo(() => lastRunOf(draft, Object.values(sessions ?? {})), [draft, sessions])
}

/** An amount with a quarter to spare, in half GiB. */
export function enoughFor(peak: number): number {
  return (Math.ceil((peak * 1.25) / (GIB / 2)) * GIB) / 2
}
