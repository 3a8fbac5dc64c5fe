import type { Draft, MountRow } from './draft'
import type { Issue } from './issues'
import { mountTarget } from './mountPath'

/** What a draft asks for and cannot be had here. */
export interface Lack {
  /** The path of the field in the spec. */
  field: string
  kind: 'agent' | 'group' | 'image' | 'accelerator' | 'mount' | 'part' | 'after' | 'notBefore'
  /** Which mount or session. */
  index: number
  /** What was asked, as it was written. */
  asked: string
  issue: Issue
}

/** Faults of what is written wrongly: it is mended where it is entered. */
const WRITTEN = new Set(['imageForm', 'imageSpaces', 'imageUpper', 'sourceAbsolute', 'pathOutside'])

/** Whether the image is on no machine and in no environment, so that only a registry can have it. */
export type ImageLack = 'none' | 'away'

/** What of a draft cannot be had, in the order in which it is best repaired: what is there depends on the machine. */
export function lacksOf(draft: Draft, issues: readonly Issue[], image: ImageLack, accelerator: string): Lack[] {
  const errors = issues.filter(
    ({ severity, missing, key }) => severity === 'error' && !missing && !WRITTEN.has(key ?? ''),
  )
  const lacks = errors.flatMap((issue) => lackOf(draft, issue, accelerator) ?? [])
  if (image !== 'none' && !lacks.some((lack) => lack.kind === 'image')) {
    lacks.push({
      field: 'image',
      kind: 'image',
      index: 0,
      asked: draft.image,
      issue: { field: 'image', severity: 'warning', key: 'imageAway', values: { image: draft.image } },
    })
  }
  const order: Lack['kind'][] = ['group', 'agent', 'image', 'accelerator', 'mount', 'part', 'after', 'notBefore']
  return lacks.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || a.index - b.index)
}

function lackOf(draft: Draft, issue: Issue, accelerator: string): Lack | null {
  const { field } = issue
  const lack = (kind: Lack['kind'], asked: string, index = 0): Lack => ({ field, kind, index, asked, issue })
  if (field === 'agent' && draft.agent) return lack('agent', draft.agent)
  if (field === 'group' && draft.group) return lack('group', draft.group)
  if (field === 'image' && draft.image) return lack('image', draft.image)
  if (field === 'accelerator' && draft.accelerator.mode !== 'none') return lack('accelerator', accelerator)
  if (field === 'notBefore' && issue.key === 'startPast' && draft.startAt) return lack('notBefore', draft.startAt)
  const after = /^after\[(\d+)\]$/.exec(field)
  if (after) return lack('after', draft.after[Number(after[1])] ?? '', Number(after[1]))
  const mount = /^mounts\[(\d+)\]\.(folder|source|path)$/.exec(field)
  const row = mount ? draft.mounts[Number(mount[1])] : undefined
  if (!mount || !row) return null
  return lack(mount[2] === 'path' ? 'part' : 'mount', mountName(row), Number(mount[1]))
}

/** What a mount is of, in one word. */
function mountName({ source, folder, path }: Pick<MountRow, 'source' | 'folder' | 'path'>): string {
  return folder === undefined ? source.trim() : [folder, path?.trim()].filter(Boolean).join('/')
}

/** A repair that was chosen, and how it is taken back. */
export interface Repair {
  kind: Lack['kind']
  asked: string
  /** What is asked now; empty: it was left out. */
  now: string
  /** Something was made for it, which stays: it is not taken back here. */
  final?: boolean
  apply: (draft: Draft) => Draft
  revert: (draft: Draft) => Draft
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** A repair that sets fields, and takes them back as they were. */
export function setting(lack: Lack, draft: Draft, now: string, change: Partial<Draft>): Repair {
  const before = Object.fromEntries(Object.keys(change).map((key) => [key, draft[key as keyof Draft]]))
  return {
    kind: lack.kind,
    asked: lack.asked,
    now,
    apply: (old) => ({ ...old, ...change }),
    revert: (old) => ({ ...old, ...before }),
  }
}

/** A repair of one entry of a list: another in its place, or none. What else is in the list stays as it is by then. */
function inList<T>(
  list: readonly T[],
  index: number,
  next: T | null,
): { apply: (list: readonly T[]) => T[]; revert: (list: readonly T[]) => T[] } {
  const old = list[index] as T
  const put = (all: readonly T[], from: T, to: T | null) => {
    const at = same(all[index], from) ? index : all.findIndex((one) => same(one, from))
    return at < 0 ? [...all] : [...all.slice(0, at), ...(to === null ? [] : [to]), ...all.slice(at + 1)]
  }
  return {
    apply: (all) => put(all, old, next),
    revert: (all) => (next === null ? [...all.slice(0, index), old, ...all.slice(index)] : put(all, next, old)),
  }
}

/**
 * Mounts something else at the place of what is not there, or nothing. What the program in the session looks for stays
 * where it was.
 */
export function repairMount(
  lack: Lack,
  draft: Draft,
  next: { source?: string; folder?: string; path?: string } | null,
): Repair {
  const old = draft.mounts[lack.index] as MountRow
  const target = old.target.trim() || mountTarget(old)
  const row: MountRow | null = next && {
    target,
    readOnly: old.readOnly,
    source: next.source ?? '',
    ...(next.folder === undefined ? {} : { folder: next.folder, path: next.path ?? '' }),
  }
  const change = inList(draft.mounts, lack.index, row)
  return {
    kind: lack.kind,
    asked: lack.asked,
    now: row ? mountName(row) : '',
    apply: (d) => ({ ...d, mounts: change.apply(d.mounts) }),
    revert: (d) => ({ ...d, mounts: change.revert(d.mounts) }),
  }
}

/** Waits for another session, or for none. */
export function repairAfter(lack: Lack, draft: Draft, next: { id: string; name: string } | null): Repair {
  const change = inList(draft.after, lack.index, next?.id ?? null)
  return {
    kind: lack.kind,
    asked: lack.asked,
    now: next?.name ?? '',
    apply: (d) => ({ ...d, after: change.apply(d.after) }),
    revert: (d) => ({ ...d, after: change.revert(d.after) }),
  }
}
