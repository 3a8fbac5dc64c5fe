import type { DeviceBoard, Environment, Folder, Machine } from '../../api/types.gen'
import { offerOf } from './accelerator'
import { amountToBytes } from './amount'
import { awayOf, placeOf } from './away'
import type { Draft } from './draft'
import { error, type Issue, warning } from './issues'

/** What is known of the machines that a draft may land on, and of its environment. */
interface Surroundings {
  /** The machines of the agents that are reached. */
  machines: readonly Machine[]
  boards: readonly DeviceBoard[]
  /** The environment that the image belongs to, and what it says it needs. */
  environment?: Environment | undefined
  folders?: readonly Folder[] | undefined
}

/** The machine a draft is measured against: the chosen one, or for Auto the largest. */
export function machineFor(agent: string, machines: readonly Machine[]): Machine | null {
  const online = machines.filter((m) => m.online && (agent === '' || m.agent === agent))
  return online.reduce<Machine | null>((best, m) => (best === null || m.memory > best.memory ? m : best), null)
}

/** What is worth knowing before a draft is launched: what it would wait for, and what its image needs. */
export function advise(draft: Draft, { machines, boards, environment, folders = [] }: Surroundings): Issue[] {
  // A machine whose engine is silent tells of no CPU at all: nothing is measured against it.
  const machine = machineFor(
    draft.agent,
    machines.filter((m) => m.cpus > 0),
  )
  return [
    ...(machine && !machine.slurm ? adviseResources(draft, machine) : []),
    ...(environment ? adviseNeeds(draft, environment) : []),
    ...adviseAccelerator(draft, boards),
    ...adviseData(draft, folders),
  ]
}

/** Data that is on another machine than the session. */
function adviseData(draft: Draft, folders: readonly Folder[]): Issue[] {
  const to = placeOf(draft)
  return [
    ...(to !== draft.agent ? [warning('agent', 'placedByData', { agent: to })] : []),
    ...draft.mounts.flatMap((mount, index) =>
      awayOf(mount, folders, to) ? error(`mounts[${index}].folder`, 'mountAway', { from: mount.agent ?? '', to }) : [],
    ),
  ]
}

/** The containers of a cluster start together, so one that does not fit makes all of them wait. */
function adviseResources({ cpu, memory, cluster }: Draft, machine: Machine): Issue[] {
  const bytes = amountToBytes(memory)
  if (!cpu || !bytes || cpu > machine.cpus || bytes > machine.memory) return []
  const cpus = Math.max(0, machine.cpus - machine.usedCpus)
  const free = Math.max(0, machine.memory - machine.usedMemory)
  const fits = Math.min(Math.floor(cpus / cpu), Math.floor(free / bytes))
  return [
    ...(cpu > cpus ? [warning('resources.cpu', 'cpuWaits', { count: cpus, total: machine.cpus })] : []),
    ...(bytes > free ? [warning('resources.memory', 'memoryWaits', { bytes: free })] : []),
    ...(cluster && cluster > 1 && fits < cluster
      ? [warning('cluster', 'clusterWaits', { count: fits, total: cluster })]
      : []),
  ]
}

/** What an environment needs and is not asked for: it may be launched all the same. */
function adviseNeeds(draft: Draft, { title, minCpu = 0, minMemory = 0, accelerator }: Environment): Issue[] {
  const issues: Issue[] = []
  if (draft.cpu !== null && draft.cpu < minCpu)
    issues.push(warning('resources.cpu', 'needsCpu', { title, count: minCpu }))
  if ((amountToBytes(draft.memory) ?? minMemory) < minMemory)
    issues.push(warning('resources.memory', 'needsMemory', { title, bytes: minMemory }))
  if (accelerator === 'required' && draft.accelerator.mode === 'none')
    issues.push(warning('accelerator', 'needsGpu', { title }))
  return issues
}

/** What is asked of devices and is not free now. */
function adviseAccelerator({ accelerator: a, agent }: Draft, boards: readonly DeviceBoard[]): Issue[] {
  const field = 'accelerator'
  const offer = offerOf(boards, agent)
  if (offer.devices.length === 0) return []
  switch (a.mode) {
    case 'shares': {
      const shares = a.shares ?? 0
      const free = shares <= 1 ? offer.freeOnOne : offer.freeShares
      if (shares <= free + 1e-9) return []
      return [warning(field, shares <= 1 ? 'gpuOneWaits' : 'gpuWaits', { free: Math.round(free * 1000) / 1000 })]
    }
    case 'devices':
      return (a.devices ?? 0) > offer.freeWhole ? [warning(field, 'gpuWholeWaits', { free: offer.freeWhole })] : []
    case 'memory':
      return (amountToBytes(a.memory) ?? 0) > offer.freeMemory
        ? [warning(field, 'vramWaits', { bytes: offer.freeMemory })]
        : []
  }
  return []
}
