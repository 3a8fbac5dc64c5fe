import { useEffect, useMemo } from 'react'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { useStored } from '@/lib/stored'
import { useNow } from '@/lib/useNow'

/** How long a failure is news, in ms. */
const news = 24 * 3600_000

const endOf = (session: Session): number => (session.terminatedAt ? Date.parse(session.terminatedAt) : 0)

/** How many sessions have failed since the finished ones were last looked at; that one looks is to be told. */
export function useFailures(sessions: readonly Session[], looking: boolean): number {
  const [seen, setSeen] = useStored('failures', 0)
  const now = useNow(false)
  const ends = useMemo(
    () =>
      sessions
        .filter((s) => !isLive(s.status) && s.result === 'failure')
        .map(endOf)
        .filter((end) => end > Math.max(seen, now - news)),
    [sessions, seen, now],
  )
  useEffect(() => {
    if (looking && ends.length > 0) setSeen(Math.max(...ends))
  }, [looking, ends, setSeen])
  return ends.length
}
