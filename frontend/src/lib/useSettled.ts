import { useEffect, useState } from 'react'

/** The server is asked when nothing was entered for this long, in milliseconds. */
const SETTLE = 350

/** A text once it has not changed for a while. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLE)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
