import { createContext, useContext } from 'react'
import type { RecipeSource } from './recipe'

/** A session as far as its tags go. */
export interface Tagged {
  id: string
  tags: readonly string[]
}

/**
 * What any feature may ask the application to do with a session, without
 * knowing the feature that does it. src/app provides it.
 */
export interface SessionActions {
  showDetail: (id: string) => void
  showLogs: (id: string, kernel?: string) => void
  openApps: (id: string) => void
  openFiles: (id: string) => void
  /** Shows how one's own ssh reaches a session. */
  openSSH: (id: string) => void
  openTerminal: (id: string, kernel?: string) => void
  /** Asks for a name, then makes an image of a running session. */
  commit: (id: string) => void
  /** Asks first, then ends them; forced ticks the box for doing it by force. */
  terminate: (ids: string[], forced?: boolean) => void
  /** Ends sessions in such a way that they can be continued. */
  park: (ids: string[]) => void
  /** Launches a session again that was ended so. */
  resume: (id: string) => void
  /** Shows what moving a session to another machine does, and moves it. */
  move: (id: string) => void
  /** Ends sessions at once that are about to end. */
  terminateNow: (ids: string[]) => void
  /** Keeps sessions that are about to end. */
  undoTerminate: (ids: string[]) => void
  /** Protects sessions from being reclaimed as idle, for so many hours, to the second. */
  keep: (ids: string[], hours: number) => void
  /** Shows what a session or a recent launch was asked for, as a recipe. */
  showRecipe: (source: RecipeSource) => void
  /** Compares two recipes, beginning with one or with none. */
  compareRecipes: (first: RecipeSource | null) => void
  /** Adds tags to sessions and takes others from them. */
  setTags: (sessions: readonly Tagged[], add: readonly string[], remove: readonly string[]) => void
  /** Changes the priority of sessions that wait. */
  setPriority: (ids: string[], priority: number) => void
}

const nothing = () => {}

export const SessionActionsContext = createContext<SessionActions>({
  showDetail: nothing,
  showLogs: nothing,
  openApps: nothing,
  openFiles: nothing,
  openSSH: nothing,
  openTerminal: nothing,
  commit: nothing,
  terminate: nothing,
  park: nothing,
  resume: nothing,
  move: nothing,
  terminateNow: nothing,
  undoTerminate: nothing,
  keep: nothing,
  showRecipe: nothing,
  compareRecipes: nothing,
  setTags: nothing,
  setPriority: nothing,
})

export function useSessionActions(): SessionActions {
  return useContext(SessionActionsContext)
}
