import type { Folder } from '../../api/types.gen'
import type { Draft, MountRow } from './draft'

/** A folder that is mounted and is on another machine than the one that the session runs on. */
export interface Away {
  folder: Folder
  /** The machine that the session runs on. */
  to: string
  /** Another folder of the same name, which is there. */
  twin: Folder | undefined
  /** What an earlier copy that was interrupted has left there. */
  begun: boolean
}

/** The machine of a draft: the chosen one, or the one that has its data; empty where any will do. */
export function placeOf(draft: Pick<Draft, 'agent' | 'mounts'>): string {
  return draft.agent || (draft.mounts.find((mount) => mount.agent)?.agent ?? '')
}

/** Whether the folder of a mount is on another machine than the one that is given. */
export function awayOf({ folder: name, agent }: MountRow, folders: readonly Folder[], to: string): Away | null {
  if (name === undefined || !agent || to === '' || agent === to) return null
  const ready = folders.filter((f) => f.state === 'ready')
  const folder = ready.find((f) => f.name === name && f.agent === agent)
  if (!folder) return null
  const there = ready.filter((f) => f.agent === to)
  return {
    folder,
    to,
    twin: there.find((f) => f.name === name),
    begun: there.some((f) => f.name === `${name}.part`),
  }
}

/**
 * A draft on another machine. Folders that were meant on the machine before, such as those of a recipe, stay those:
 * they are not taken for others of the same name.
 */
export function movedTo(draft: Draft, to: Pick<Draft, 'agent' | 'group'>, folders: readonly Folder[]): Draft {
  const here = new Set(folders.filter((f) => f.state === 'ready' && f.agent === draft.agent).map((f) => f.name))
  const mounts = draft.mounts.map((mount) =>
    mount.folder !== undefined && !mount.agent && here.has(mount.folder) ? { ...mount, agent: draft.agent } : mount,
  )
  return { ...draft, ...to, mounts }
}

/** The name of a copy: that of the folder, or with a number where another folder has it. */
export function copyName(name: string, taken: readonly string[]): string {
  for (let number = 2, free = name; ; number++) {
    if (!taken.includes(free)) return free
    free = `${name}-${number}`
  }
}
