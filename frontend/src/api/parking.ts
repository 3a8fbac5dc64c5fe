import type { Session } from './types.gen'

/** Whether a session can be ended in such a way that it can be continued: as the agent decides. */
export function isParkable(s: Pick<Session, 'status' | 'type' | 'spec' | 'lastHeard'>): boolean {
  return (
    s.status === 'RUNNING' && s.type === 'interactive' && (s.spec.cluster ?? 1) <= 1 && !s.spec.admin && !s.lastHeard
  )
}

/** Whether a session has ended and can be continued. */
export function isContinuable(s: Pick<Session, 'status' | 'parked' | 'endImage'>): boolean {
  return Boolean(s.parked) && s.status === 'TERMINATED' && s.endImage?.state === 'done'
}
