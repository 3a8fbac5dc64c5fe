// The names of statuses, grouped by what a person needs to know of them.

export type StatusFamily = 'waiting' | 'preparing' | 'running' | 'ending' | 'ended' | 'cancelled' | 'failed' | 'unknown'

const families: Record<string, StatusFamily> = {
  PENDING: 'waiting',
  SCHEDULED: 'preparing',
  PREPARING: 'preparing',
  PULLING: 'preparing',
  PREPARED: 'preparing',
  CREATING: 'preparing',
  RUNNING: 'running',
  TERMINATING: 'ending',
  TERMINATED: 'ended',
  CANCELLED: 'cancelled',
  ERROR: 'failed',
}

/** Every status, in the order of a session's life. */
export const statuses: readonly string[] = Object.keys(families)

/** The family of a status; one that a newer server invents is unknown. */
export function statusFamily(status: string): StatusFamily {
  return families[status] ?? 'unknown'
}

/** Whether a session in this status has not ended. An unknown status counts as live. */
export function isLive(status: string): boolean {
  const family = statusFamily(status)
  return family !== 'ended' && family !== 'cancelled' && family !== 'failed'
}

/** The order of statuses in a session's life, for sorting. */
export function statusRank(status: string): number {
  const rank = Object.keys(families).indexOf(status)
  return rank < 0 ? Object.keys(families).length : rank
}
