import type { Service } from '@/api/types.gen'

/** The order for sorting: what needs a person comes first. */
const order = ['FAILED', 'UNREACHABLE', 'DEGRADED', 'UPDATING', 'DEPLOYING', 'READY', 'ASLEEP', 'STOPPING', 'STOPPED']

export function stateRank(state: string): number {
  const rank = order.indexOf(state)
  return rank < 0 ? order.length : rank
}

/** Whether it was stopped by a person, or is about to be. */
export function isStopped({ replicas }: Pick<Service, 'replicas'>): boolean {
  return replicas === 0
}

export function healthyOf({ live }: Pick<Service, 'live'>): number {
  return live.filter((replica) => replica.state === 'healthy').length
}

/** The replicas that are wanted now, which its rules may have changed. */
export function wantedOf({ scaling, replicas }: Pick<Service, 'scaling' | 'replicas'>): number {
  return scaling.target || replicas
}

/** The address of a service's detail. */
export function addressOf({ name, agent }: Pick<Service, 'name' | 'agent'>): string {
  return `/services/${encodeURIComponent(name)}?on=${encodeURIComponent(agent)}`
}

/** The address of the playground with a service. */
export function playgroundOf({ name, agent }: Pick<Service, 'name' | 'agent'>): string {
  return `/playground?service=${encodeURIComponent(name)}&agent=${encodeURIComponent(agent)}`
}

/** The revision that all replicas have, or are changing to. */
export function currentRevision({ revision, revisions }: Pick<Service, 'revision' | 'revisions'>) {
  return revisions.find((one) => one.number === revision) ?? revisions[0]
}

/** The names under which clients ask for the model. */
export function modelNames(service: Pick<Service, 'name' | 'revision' | 'revisions'>): string[] {
  const names = currentRevision(service)?.spec.serving?.models ?? []
  return names.length > 0 ? names : [service.name]
}
