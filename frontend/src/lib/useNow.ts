import { useSyncExternalStore } from 'react'
import { now, onClock } from './now'

const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined
const whole = () => Math.floor(now() / 1000) * 1000
let shown = whole()

function tick(): void {
  shown = whole()
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

onClock(tick)

const idle = () => () => {}

/**
 * The time that sessions go by, in ms since 1970, in whole seconds. All users share one timer; a still one never
 * changes.
 */
export function useNow(ticking = true): number {
  return useSyncExternalStore(ticking ? subscribe : idle, () => shown)
}
