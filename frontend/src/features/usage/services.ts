import type { ServiceUsage } from '@/api/types.gen'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { digits, formatEnergy, toHours } from '@/lib/share'

/** Requests that the service failed: no answer, or one that broke off. */
export const failedOf = (usage: ServiceUsage): number => usage.failed + usage.cut

/** The energy of the replicas in millijoules. */
export const energyOf = (usage: ServiceUsage): number => usage.energyDynamic + usage.energyIdle

/** Watt hours for 1,000 tokens: "0.42 Wh". A dash: unknown. */
export const formatWh = (wh: number | undefined): string => (wh === undefined ? '–' : `${digits(wh)} Wh`)

/** A service, or one of its revisions or tokens. */
export interface ServiceRow {
  key: string
  usage: ServiceUsage
  part?: 'revision' | 'token'
  children?: ServiceRow[]
}

/** What is of one service: two machines, or two owners one after the other, may have one of the same name. */
const keyOf = ({ service, agent, owner }: ServiceUsage): string => [service, agent, owner].join(' ')

/** Services with their revisions and tokens below them. */
export function serviceRows(
  services: readonly ServiceUsage[],
  revisions: readonly ServiceUsage[],
  tokens: readonly ServiceUsage[],
): ServiceRow[] {
  return services.map((usage) => {
    const key = keyOf(usage)
    const parts = (part: 'revision' | 'token', of: readonly ServiceUsage[]) =>
      of
        .filter((one) => keyOf(one) === key)
        .map((one) => ({ key: [key, part, one.revision, one.tokenName, one.token].join(' '), usage: one, part }))
    const children = [...parts('revision', revisions), ...parts('token', tokens)]
    return { key, usage, ...(children.length > 0 ? { children } : {}) }
  })
}

export interface Figure {
  key: 'requests' | 'failed' | 'read' | 'generated' | 'first' | 'p99' | 'gpu' | 'energy' | 'wh'
  width: number
  value: (usage: ServiceUsage) => number
  text: (usage: ServiceUsage) => string
  /** It is known only of replicas, which answer requests with different tokens at once. */
  ofReplicas?: true
}

/** The figures of a service, and of its parts. */
export const figures: readonly Figure[] = [
  { key: 'requests', width: 84, value: (u) => u.requests, text: (u) => formatCount(u.requests) },
  { key: 'failed', width: 68, value: failedOf, text: (u) => formatCount(failedOf(u)) },
  { key: 'read', width: 84, value: (u) => u.promptTokens, text: (u) => formatCount(u.promptTokens) },
  { key: 'generated', width: 88, value: (u) => u.completionTokens, text: (u) => formatCount(u.completionTokens) },
  { key: 'first', width: 88, value: (u) => u.firstWord.p50Ms, text: (u) => formatFirstWord(u.firstWord.p50Ms) },
  { key: 'p99', width: 64, value: (u) => u.firstWord.p99Ms, text: (u) => formatFirstWord(u.firstWord.p99Ms) },
  {
    key: 'gpu',
    width: 84,
    value: (u) => u.allocGpuMs,
    text: (u) => `${digits(toHours(u.allocGpuMs))} h`,
    ofReplicas: true,
  },
  { key: 'energy', width: 84, value: energyOf, text: (u) => formatEnergy(energyOf(u)), ofReplicas: true },
  {
    key: 'wh',
    width: 108,
    value: (u) => u.whPerThousandTokens ?? 0,
    text: (u) => digits(u.whPerThousandTokens ?? 0),
    ofReplicas: true,
  },
]
