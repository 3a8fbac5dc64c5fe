import { HOME } from './rules.gen'
import type { FolderMount, Session } from './types.gen'

/** The folder that is the home of a session; undefined: the home is deleted with the session. */
export function keptHome(session: Pick<Session, 'folders'>): FolderMount | undefined {
  return session.folders.find((mount) => mount.target === HOME)
}
