import { useSyncExternalStore } from 'react'
import type { ApiProblem } from './client'

/**
 * An app that this page is opening, or has opened or failed to open a moment
 * ago. It outlives the dialog that began it, so that the notification can tell
 * how it went.
 */
export interface Opening {
  session: string
  app: string
  title: string
  /** When opening began, in milliseconds since 1970; null when it is over. */
  since: number | null
  problem: ApiProblem | null
  /** The browser refused a tab: the address to open by hand, valid for a minute. */
  blocked: string | null
  /** No tab was asked for, so the browser refused none. */
  unasked?: boolean | undefined
  /** Gives the start up; null when it is over, or being given up already. */
  giveUp: (() => void) | null
}

/** How long one that went well is still told of, in milliseconds. */
const TOLD = 4_000

let openings: readonly Opening[] = []
const listeners = new Set<() => void>()

function replace(next: readonly Opening[]): void {
  openings = next
  listeners.forEach((listener) => listener())
}

const isOther = (session: string, app: string) => (o: Opening) => o.session !== session || o.app !== app

/** Stores how the opening of an app stands. One that went well is forgotten by itself. */
export function setOpening(opening: Opening): void {
  replace([...openings.filter(isOther(opening.session, opening.app)), opening])
  if (opening.since !== null || opening.problem || opening.blocked) return
  setTimeout(() => replace(openings.filter((o) => o !== opening)), TOLD)
}

export function forgetOpening(session: string, app: string): void {
  replace(openings.filter(isOther(session, app)))
}

/** What is being opened, the latest last. */
export function useOpenings(): readonly Opening[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => openings,
  )
}
