import type { Amount, ResourceSummary } from '@/api/types.gen'

/** The panels over the list, and the resources that each may show. */
export const panels = ['machine', 'mine', 'limit'] as const
export type Panel = (typeof panels)[number]
export const resources = ['cpu', 'memory', 'gpu', 'vram', 'disk', 'sessions'] as const
export type Resource = (typeof resources)[number]

/** What is shown, kept in this browser. */
export interface PanelChoice {
  panels: Panel[]
  resources: Resource[]
  /** The entries that there were when this was kept; nothing: those of the first version. */
  known?: string[]
}

export const usualChoice: PanelChoice = { panels: ['machine', 'mine', 'limit'], resources: ['cpu', 'memory', 'gpu', 'vram', 'disk', 'sessions'] }

const firstEntries: readonly string[] = ['machine', 'mine', ...resources]

/** A kept choice as it is shown: what is newer than the choice shows until it is turned off. */
export function withNewer(choice: PanelChoice): PanelChoice {
  const known = choice.known ?? firstEntries
  const shows = (chosen: readonly string[]) => (entry: string) => chosen.includes(entry) || !known.includes(entry)
  return { panels: panels.filter(shows(choice.panels)), resources: resources.filter(shows(choice.resources)) }
}

/** A choice as it is kept. */
export function kept(choice: PanelChoice): PanelChoice {
  return { panels: choice.panels, resources: choice.resources, known: [...panels, ...resources] }
}

/** Turns one entry on or off; the order stays that of all. */
export function toggled<T extends string>(all: readonly T[], chosen: readonly T[], one: T, on: boolean): T[] {
  return all.filter((entry) => (entry === one ? on : chosen.includes(entry)))
}

const nothing: Amount = { cpu: 0, memory: 0, gpu: 0, vram: 0 }

function plus(a: Amount, b: Amount): Amount {
  return { cpu: a.cpu + b.cpu, memory: a.memory + b.memory, gpu: a.gpu + b.gpu, vram: a.vram + b.vram }
}

export interface Sum {
  total: Amount
  promised: Amount
  mine: Amount
  free: Amount
  load: Amount
}

/** The machines that are reached, as one. */
export function sumOf(summaries: readonly ResourceSummary[]): Sum {
  const online = summaries.filter((s) => s.online)
  const of = (read: (s: ResourceSummary) => Amount) => online.map(read).reduce(plus, nothing)
  return { total: of((s) => s.total), promised: of((s) => s.promised), mine: of((s) => s.mine), free: of((s) => s.free), load: of((s) => s.load) }
}
