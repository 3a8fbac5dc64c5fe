import { useCallback, useEffect, useRef } from 'react'

/** Returns what gives a signal that is aborted when the component goes: nobody waits for an answer any more then. */
export function useLeaving(): () => AbortSignal | undefined {
  const controller = useRef<AbortController | null>(null)
  useEffect(() => {
    const one = (controller.current = new AbortController())
    return () => one.abort()
  }, [])
  return useCallback(() => controller.current?.signal, [])
}
