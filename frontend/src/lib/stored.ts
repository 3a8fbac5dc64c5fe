import { useCallback, useSyncExternalStore } from 'react'

// Choices of this browser alone (columns, sort), kept in localStorage. What
// belongs to the person is in the settings of the server.

const prefix = 'slipway.'
const listeners = new Map<string, Set<() => void>>()
const cache = new Map<string, { text: string | null; value: unknown }>()

export function readStored<T>(key: string, fallback: T): T {
  let text: string | null = null
  try {
    text = localStorage.getItem(prefix + key)
  } catch {
    return fallback
  }
  const hit = cache.get(key)
  if (hit && hit.text === text && text !== null) return hit.value as T
  if (text === null) return fallback
  try {
    const value = JSON.parse(text) as T
    cache.set(key, { text, value })
    return value
  } catch {
    return fallback
  }
}

export function writeStored(key: string, value: unknown): void {
  try {
    localStorage.setItem(prefix + key, JSON.stringify(value))
  } catch {
    // A full or forbidden store costs only that the choice is forgotten.
  }
  listeners.get(key)?.forEach((listener) => listener())
}

/** A value that survives a reload; every user of the same key sees a change. fallback must be stable. */
export function useStored<T>(key: string, fallback: T): [T, (value: T) => void] {
  const subscribe = useCallback(
    (listener: () => void) => {
      const set = listeners.get(key) ?? new Set()
      listeners.set(key, set.add(listener))
      return () => set.delete(listener)
    },
    [key],
  )
  const value = useSyncExternalStore(subscribe, () => readStored(key, fallback))
  const set = useCallback((next: T) => writeStored(key, next), [key])
  return [value, set]
}
