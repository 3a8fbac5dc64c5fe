import type { Session } from '@/api/types.gen'

/** How many containers share in what a session is asked for: each is granted all of it. */
export function kernelsOf(session: Session): number {
  return session.spec.cluster ?? 1
}
