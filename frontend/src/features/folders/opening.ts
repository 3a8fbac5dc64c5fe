import type { ReactNode } from 'react'
import type { Folder, RecentProject } from '@/api/types.gen'

/** A project that is opened. */
export interface Opening {
  folder: Folder
  /** The project's directory in the folder; empty: the folder itself. */
  dir: string
  /** What was chosen when it was open before. */
  file?: string
  environment?: string
  /** Of the repository that it was cloned from. */
  address?: string
}

export function openingOf(
  { path = '', file = '', environment = '', address = '' }: RecentProject,
  folder: Folder,
): Opening {
  return { folder, dir: path, file, environment, address }
}

/** Files of a directory, which are uploaded into a new folder. */
interface Files {
  name: string
  count: number
  bytes: number
  upload: (folder: Folder) => void
  /** How far the upload is; partly: something failed or was cancelled. */
  stateOf: (folder: Folder) => 'sending' | 'whole' | 'partly'
  listOf: (folder: Folder) => ReactNode
}

/** A directory that was dropped onto the page. */
export type Dropped = { path: string } | Files

/** A name that a folder may have, like that of a directory. */
export function folderNameOf(path: string): string {
  const name = path.split(/[\\/]/).findLast(Boolean) ?? ''
  const allowed = name.replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^-+|-+$/g, '')
  return /[A-Za-z0-9]/.test(allowed) ? allowed.slice(0, 64) : 'project'
}
