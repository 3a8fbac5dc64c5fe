import { CACHE_FOLDER } from '@/api/rules.gen'
import type { Session } from '@/api/types.gen'
import { acceleratorRank } from '@/lib/accelerator'
import { parseBytes } from '@/lib/bytes'
import { firstEnd } from '@/lib/idle'
import { now } from '@/lib/now'
import { statusRank } from '@/lib/status'

const text = (read: (s: Session) => string) => (a: Session, b: Session) => read(a).localeCompare(read(b))
const number = (read: (s: Session) => number) => (a: Session, b: Session) => read(a) - read(b)

/** Milliseconds a session has run; -1 if it never did. */
function ran(session: Session): number {
  if (!session.startedAt) return -1
  const end = session.terminatedAt ? Date.parse(session.terminatedAt) : now()
  return end - Date.parse(session.startedAt)
}

/** When its idle checks would end a session, in ms since 1970; never where none would. */
function endsAt(session: Session): number {
  const first = firstEnd(session.idle)
  return first?.expiresAt ? Date.parse(first.expiresAt) : Number.MAX_SAFE_INTEGER
}

/** By the course of a session's life; those that wait by their turn. */
function byStatus(a: Session, b: Session): number {
  return statusRank(a.status) - statusRank(b.status) || (a.wait?.position ?? 0) - (b.wait?.position ?? 0)
}

/** The folders whose data a session uses: not the cache, which nearly all have. */
export const dataFolders = (session: Session): string[] =>
  session.folders.filter((f) => f.name !== CACHE_FOLDER).map((f) => f.name)

/** What of the person's own data it has mounted. */
export function foldersOf(session: Session): string {
  return [...dataFolders(session), ...(session.spec.mounts ?? []).flatMap((m) => m.source ?? [])].join(', ')
}

export const comparators = {
  name: text((s) => s.name),
  status: byStatus,
  accelerator: number((s) => s.grants.gpus.reduce((sum, g) => sum + g.share, 0) || acceleratorRank(s.spec.accelerator)),
  idle: number(endsAt),
  priority: number((s) => s.priority),
  label: text((s) => s.spec.label ?? ''),
  image: text((s) => s.image),
  cpu: number((s) => s.spec.resources.cpu ?? 0),
  memory: number((s) => parseBytes(s.spec.resources.memory) ?? 0),
  elapsed: number(ran),
  agent: text((s) => s.agent),
  type: text((s) => s.type),
  created: number((s) => Date.parse(s.createdAt)),
  ended: number((s) => (s.terminatedAt ? Date.parse(s.terminatedAt) : 0)),
  result: text((s) => s.result),
  reason: text((s) => s.reason),
  id: text((s) => s.id),
  owner: text((s) => s.owner),
  tags: text((s) => s.tags.join(', ')),
  cluster: number((s) => s.spec.cluster ?? 1),
  started: number((s) => (s.startedAt ? Date.parse(s.startedAt) : 0)),
  exit: number((s) => s.exitCode ?? -1),
  depends: number((s) => s.dependsOn.length + s.dependents.length),
  folders: text(foldersOf),
}

export type SortKey = keyof typeof comparators
