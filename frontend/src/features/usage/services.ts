import type { ServiceUsage } from '@/api/types.gen'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { digits, formatEnergy, toHours } from '@/lib/share'

/** Requests that the service failed: no answer, or one that broke off. */
export const failedOf = (usage: ServiceUsage): number => usage.failed + usage.cut

/** The energy of the replicas in millijoules. */
export const energyOf = (usage: ServiceUsage): number => usage.energyDynamic + usage.energyIdle

/** Watt hours for 1,000 tokens: "0.42 Wh". A dash: unknown. */
export const formatWh = (wh: number | undefined): string => (wh === undefined ? '–' : `${digits(wh)} Wh`)

/** Rows of two services, or of one name on two machines or of two owners, differ. */
export const keyOf = ({ agent, owner, service }: ServiceUsage): string => [agent, owner, service].join(' ')

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
  { key: 'requests', width: 92, value: (u) => u.requests, text: (u) => formatCount(u.requests) },
  { key: 'failed', width: 76, value: failedOf, text: (u) => formatCount(failedOf(u)) },
  { key: 'read', width: 96, value: (u) => u.promptTokens, text: (u) => formatCount(u.promptTokens) },
  { key: 'generated', width: 96, value: (u) => u.completionTokens, text: (u) => formatCount(u.completionTokens) },
  { key: 'first', width: 96, value: (u) => u.firstWord.p50Ms, text: (u) => formatFirstWord(u.firstWord.p50Ms) },
  { key: 'p99', width: 80, value: (u) => u.firstWord.p99Ms, text: (u) => formatFirstWord(u.firstWord.p99Ms) },
  {
    key: 'gpu',
    width: 96,
    value: (u) => u.allocGpuMs,
    text: (u) => `${digits(toHours(u.allocGpuMs))} h`,
    ofReplicas: true,
  },
  { key: 'energy', width: 92, value: energyOf, text: (u) => formatEnergy(energyOf(u)), ofReplicas: true },
  {
    key: 'wh',
    width: 128,
    value: (u) => u.whPerThousandTokens ?? 0,
    text: (u) => formatWh(u.whPerThousandTokens),
    ofReplicas: true,
  },
]
