import { useSyncExternalStore } from 'react'

const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined
let now = Math.floor(Date.now() / 1000) * 1000

function tick(): void {
  now = Math.floor(Date.now() / 1000) * 1000
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (listeners.size === 1) {
    tick()
    timer = setInterval(tick, 1000)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) clearInterval(timer)
  }
}

const idle = () => () => {}

/** The time in ms since 1970, in whole seconds. All users share one timer; a still one never changes. */
export function useNow(ticking = true): number {
  return useSyncExternalStore(ticking ? subscribe : idle, () => now)
}
