import { useEffect, useState } from 'react'

const until = (at: string) => Math.max(0, Math.ceil((Date.parse(at) - Date.now()) / 1000))

/** The whole seconds that are left until a time by the clock of this computer, which a demo does not speed up. */
export function useSecondsUntil(at: string): number {
  const [seconds, setSeconds] = useState(() => until(at))
  useEffect(() => {
    const tick = () => setSeconds(until(at))
    tick()
    const timer = setInterval(tick, 250)
    return () => clearInterval(timer)
  }, [at])
  return seconds
}
