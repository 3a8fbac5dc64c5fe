import type { Answer } from './conversation'

/** Tokens per second from the first word to the last; undefined while the model has not said how many there were. */
export function speedOf({ usage, first, last }: Answer): number | undefined {
  if (!usage || usage.completion < 2 || first === undefined || last === undefined || last <= first) return undefined
  return ((usage.completion - 1) * 1000) / (last - first)
}
