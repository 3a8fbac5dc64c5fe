/** How the clock goes by which people read times: that of the computer, or a demo's, which may run faster. */
interface Clock {
  /** How much faster than the computer's it runs. */
  speed: number
  /** What it showed, in ms since 1970, when the computer's showed `real`. */
  shown: number
  real: number
}

const computer: Clock = { speed: 1, shown: 0, real: 0 }
let clock = computer
const listeners = new Set<() => void>()

/** Chooses the clock; none, or one that a program from before does not tell: the computer's. */
export function setClock(next?: Clock): void {
  clock = next && [next.speed, next.shown, next.real].every(Number.isFinite) ? next : computer
  for (const listener of listeners) listener()
}

/** Tells of another clock, until the function that it returns is called. */
export function onClock(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The time that sessions go by, in ms since 1970. Waiting in the page itself goes by Date.now(). */
export function now(): number {
  return clock.shown + (Date.now() - clock.real) * clock.speed
}

/** How long a length of time takes on the computer's clock. */
export function realLength(ms: number): number {
  return ms / clock.speed
}
