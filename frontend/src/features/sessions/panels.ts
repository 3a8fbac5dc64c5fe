import type { Amount, Machine, ResourceSummary } from '@/api/types.gen'

/** The panels over the list, and the resources that each may show. */
export const panels = ['machine', 'group', 'mine', 'limit'] as const
export type Panel = (typeof panels)[number]
export const resources = ['cpu', 'memory', 'gpu', 'vram', 'disk', 'sessions'] as const
export type Resource = (typeof resources)[number]

/** What is shown, kept in this browser. */
export interface PanelChoice {
  panels: Panel[]
  resources: Resource[]
  /** The agent of the machine shown; nothing, or one that is gone: this computer. */
  machine?: string
  /** The resource group shown; nothing, or one that is gone: that of this computer. */
  group?: string
  /** The entries that there were when this was kept; nothing: those of the first version. */
  known?: string[]
}

export const usualChoice: PanelChoice = {
  panels: ['machine', 'group', 'mine', 'limit'],
  resources: ['cpu', 'memory', 'gpu', 'vram', 'disk', 'sessions'],
}

const firstEntries: readonly string[] = ['machine', 'mine', ...resources]

/** A kept choice as it is shown: what is newer than the choice shows until it is turned off. */
export function withNewer(choice: PanelChoice): PanelChoice {
  const known = choice.known ?? firstEntries
  const shows = (chosen: readonly string[]) => (entry: string) => chosen.includes(entry) || !known.includes(entry)
  return {
    ...choice,
    panels: panels.filter(shows(choice.panels)),
    resources: resources.filter(shows(choice.resources)),
  }
}

/** A choice as it is kept. */
export function kept(choice: PanelChoice): PanelChoice {
  return { ...choice, known: [...panels, ...resources] }
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
  return {
    total: of((s) => s.total),
    promised: of((s) => s.promised),
    mine: of((s) => s.mine),
    free: of((s) => s.free),
    load: of((s) => s.load),
  }
}

/** What the machine says of itself, until the summary is there. */
export function fromMachine(machine: Machine): Sum {
  const amount = (cpu: number, memory: number) => ({ cpu, memory, gpu: 0, vram: 0 })
  const { cpus, memory, usedCpus, usedMemory, loadCpu, loadMemory } = machine
  return {
    total: amount(cpus, memory),
    promised: amount(usedCpus, usedMemory),
    mine: amount(0, 0),
    free: amount(cpus - usedCpus, memory - usedMemory),
    load: amount(loadCpu, loadMemory),
  }
}

/** What is left for one's own sessions: what is free, where one is limited at most what the limit leaves. */
export function leftForMe(summaries: readonly ResourceSummary[]): Amount {
  return summaries
    .filter((s) => s.online)
    .map(({ free, mine, limit }): Amount => {
      const most = (resource: 'cpu' | 'memory' | 'gpu') => {
        const allowed = limit?.[resource]
        return allowed ? Math.max(0, Math.min(free[resource], allowed - mine[resource])) : free[resource]
      }
      return { cpu: most('cpu'), memory: most('memory'), gpu: most('gpu'), vram: free.vram }
    })
    .reduce(plus, nothing)
}

/** The resource groups that there are, by name, the default one first. */
export function groupsOf(summaries: readonly ResourceSummary[]): string[] {
  return [...new Set(summaries.map((s) => s.group))].toSorted(
    (a, b) => Number(b === 'default') - Number(a === 'default') || a.localeCompare(b),
  )
}
