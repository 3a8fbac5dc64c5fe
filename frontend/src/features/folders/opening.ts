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
