import type { Agent, Amount, Machine, Operation, ResourceSummary } from '@/api/types.gen'
import { isRunning } from '@/lib/operation'

/** One agent with what is known of its machine. */
export interface Row {
  agent: Agent
  machine: Machine | undefined
  total: Amount | undefined
  promised: Amount | undefined
  load: Amount | undefined
  /** What goes on with it now. */
  operation: Operation | undefined
}

/** Joins what is told of agents in several places; sessions counts the live ones of an agent. */
export function joinRows(
  agents: readonly Agent[],
  machines: readonly Machine[],
  resources: readonly ResourceSummary[],
  operations: readonly Operation[],
): Row[] {
  return agents.map((agent) => {
    const sum = resources.find((r) => r.agent === agent.name)
    return {
      agent,
      machine: machines.find((m) => m.agent === agent.name),
      total: sum?.total,
      promised: sum?.promised,
      load: sum?.load,
      operation: operations.find((o) => isRunning(o) && belongs(o, agent)),
    }
  })
}

/** Whether an operation is about an agent: by the name it bears, or the address it was added with. */
export function belongs(operation: Operation, agent: Agent): boolean {
  return (
    operation.agent === agent.name ||
    operation.subject === agent.name ||
    (agent.address !== '' && operation.subject === agent.address)
  )
}

/** The rows of each resource group, groups by name, the default one first. */
export function byGroup(rows: readonly Row[]): [string, Row[]][] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) groups.set(row.agent.group, [...(groups.get(row.agent.group) ?? []), row])
  return [...groups].toSorted(([a], [b]) => Number(b === 'default') - Number(a === 'default') || a.localeCompare(b))
}

/** The names of all groups. */
export function groupsOf(agents: readonly Agent[]): string[] {
  return [...new Set(['default', ...agents.map((a) => a.group)])]
}

/** What can be said against an address before anybody is asked; a key of the texts. */
export function addressFault(text: string): 'required' | 'spaces' | 'scheme' | null {
  const address = text.trim()
  if (address === '') return 'required'
  if (/\s/.test(address)) return 'spaces'
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase()
  if (scheme && !['ssh', 'slurm', 'slipway', 'wss'].includes(scheme)) return 'scheme'
  return null
}
