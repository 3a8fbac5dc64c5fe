import type { AuditEntry } from '@/api/types.gen'

/** One thing that was done, in the words in which it is shown. */
export interface Act {
  entry: AuditEntry
  key: number
  word: string
  /** The name of its session where that is known, else its id; empty: it was of none. */
  session: string
}

export interface AuditFilter {
  /** Words, each of which is somewhere in an act. */
  text: string
  /** Empty: everybody. */
  person: string
  /** Only what was refused or went wrong. */
  failed: boolean
  /** Only what decides who may reach the agent, and who tried. */
  security: boolean
}

export const ok = (entry: AuditEntry): boolean => entry.outcome === 'ok'

/** How often something was done, where that is more than once. */
export const times = ({ count = 1 }: AuditEntry): string => (count > 1 ? ` ×${count}` : '')

/** Where somebody called from without the port, which is another one each time. */
export const hostOf = (from = ''): string => from.replace(/:\d+$/, '')

/** Whether an act passes a filter. */
export function matches({ entry, word, session }: Act, filter: AuditFilter): boolean {
  if (filter.failed && ok(entry)) return false
  if (filter.security && !entry.security) return false
  if (filter.person !== '' && entry.owner !== filter.person) return false
  const all = [
    word,
    session,
    entry.owner,
    entry.from,
    entry.method,
    entry.session,
    entry.target,
    entry.outcome,
    entry.device,
  ]
    .join(' ')
    .toLowerCase()
  return filter.text
    .toLowerCase()
    .split(/\s+/)
    .every((part) => all.includes(part))
}

/** Everybody who did something, by name. */
export const peopleOf = (entries: readonly AuditEntry[]): string[] =>
  [...new Set(entries.map((e) => e.owner).filter(Boolean))].toSorted((a, b) => a.localeCompare(b))
