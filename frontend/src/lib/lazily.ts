import { type ComponentType, lazy } from 'react'

/** Pause before another try, in milliseconds. */
const PAUSE = 400

/**
 * Loads a part of the page, and tries again where that was cut off: Chromium
 * ends every request under way when a network interface appears, and one does
 * with each container that starts, just when the page turns to its sessions.
 */
export async function lazily<T>(load: () => Promise<T>, tries = 3): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (tries <= 1) throw error
    await new Promise((done) => setTimeout(done, PAUSE))
    return lazily(load, tries - 1)
  }
}

/** A component of a part of the page that is loaded once it is drawn. */
export function part<N extends string, P>(load: () => Promise<Record<N, ComponentType<P>>>, name: N) {
  return lazy(async () => ({ default: (await lazily(load))[name] }))
}
