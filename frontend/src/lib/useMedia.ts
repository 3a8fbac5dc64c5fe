import { useCallback, useSyncExternalStore } from 'react'

/** What a system says for somebody who wants nothing to move. */
export const calmQuery = '(prefers-reduced-motion: reduce)'

/** Whether nothing is to move, as of now. */
export const isCalm = (): boolean => window.matchMedia(calmQuery).matches

/** Whether a media query matches, kept current. */
export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = window.matchMedia(query)
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    [query],
  )
  return useSyncExternalStore(subscribe, () => window.matchMedia(query).matches)
}
