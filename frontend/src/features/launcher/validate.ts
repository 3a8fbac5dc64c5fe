import type { DeviceBoard, Environment, Machine } from '../../api/types.gen'
import { amountToBytes, GIB, MIB } from './amount'
import { automaticShm, type Draft } from './draft'
import type { Issue } from './issues'
import { MAX_PORT, MAX_PORTS, MIN_PORT, portFaults } from './ports'
import { looksSecret } from './secrets'
import { validateMounts } from './validateMounts'
import { validateAccelerator, validateQueue } from './validateQueue'

/** What the world looks like to a draft. */
export interface Surroundings {
  /** Milliseconds since 1970. */
  now: number
  /** Names of the person's live sessions. */
  liveNames: ReadonlySet<string>
  /** The machines of the agents that are reached. */
  machines: readonly Machine[]
  /** What is known of their devices; nothing yet: empty. */
  boards?: readonly DeviceBoard[]
  /** The environment that the image belongs to, and what it says it needs. */
  environment?: Environment
  /** Resource groups that there are; nothing yet: undefined. */
  groups?: ReadonlySet<string>
  /** Sessions that may be waited for, by their ids and names. */
  sessionIds?: ReadonlySet<string>
}

/** What a session needs to hold the guest and a shell. */
export const MIN_MEMORY = 64 * MIB
export const NAME_MIN = 4
export const NAME_MAX = 64
export const MAX_THREADS = 1000

const error = (field: string, key: string, values?: Issue['values']): Issue => ({
  field,
  severity: 'error',
  key,
  values,
})
const warning = (field: string, key: string, values?: Issue['values']): Issue => ({
  field,
  severity: 'warning',
  key,
  values,
})

/** Everything that is wrong with a draft, or worth knowing before it is launched. */
export function validate(draft: Draft, around: Surroundings): Issue[] {
  return [
    ...validateName(draft.name, around.liveNames),
    ...(draft.type === 'batch' ? validateBatch(draft, around.now) : []),
    ...validateImage(draft.image),
    ...validateEnv(draft.env),
    ...validateResources(draft, around.machines),
    ...validateThreads(draft.threads),
    ...validateMounts(draft.mounts),
    ...validatePorts(draft.ports),
    ...(around.environment ? validateNeeds(draft, around.environment) : []),
    ...validateGroup(draft.group, around.groups),
    ...validateAccelerator(
      draft.accelerator,
      around.boards ?? [],
      around.machines.some((m) => m.agent === draft.agent) ? draft.agent : '',
    ),
    ...validateQueue(draft, around.sessionIds ?? null),
  ]
}

function validateName(name: string, liveNames: ReadonlySet<string>): Issue[] {
  if (name === '') return []
  const key = nameFault(name) ?? (liveNames.has(name) ? 'nameTaken' : null)
  return key ? [error('name', key, { name, min: NAME_MIN, max: NAME_MAX })] : []
}

/** What is wrong with a name in itself; null when nothing is. */
export function nameFault(name: string): string | null {
  if (name.length < NAME_MIN) return 'nameShort'
  if (name.length > NAME_MAX) return 'nameLong'
  if (!/^\w/.test(name)) return 'nameStart'
  if (!/\w$/.test(name)) return 'nameEnd'
  return /^[\w.-]+$/.test(name) ? null : 'nameCharacters'
}

function validateBatch(draft: Draft, now: number): Issue[] {
  const issues: Issue[] = []
  if (draft.command.trim() === '') issues.push(error('command', 'commandRequired'))
  if (draft.startAt !== null) {
    const at = Date.parse(draft.startAt)
    if (Number.isNaN(at)) issues.push(error('notBefore', 'startRequired'))
    else if (at <= now) issues.push(error('notBefore', 'startPast'))
  }
  if (draft.timeout && !(Number.isInteger(draft.timeout.value) && (draft.timeout.value ?? 0) >= 1)) {
    issues.push(error('timeout', 'timeoutNumber'))
  }
  return issues
}

function validateImage(image: string): Issue[] {
  const reference = image.trim()
  if (reference === '') return [error('image', 'imageRequired')]
  if (/\s/.test(reference)) return [error('image', 'imageSpaces')]
  const path = reference.split('@')[0]?.replace(/:[^/:]*$/, '') ?? ''
  if (path.replace(/^[^/]*[.:][^/]*\//, '') !== path.replace(/^[^/]*[.:][^/]*\//, '').toLowerCase()) {
    return [error('image', 'imageUpper')]
  }
  return /^[\w][\w.\-/:@]*$/.test(reference) ? [] : [error('image', 'imageForm')]
}

function validateEnv(env: Draft['env']): Issue[] {
  const seen = new Set<string>()
  return env.flatMap(({ name, value }, index) => {
    const issues: Issue[] = []
    const fault = envNameFault(name, seen)
    if (fault) issues.push(error(`env[${index}].name`, fault, { name }))
    if (value === '' && looksSecret(name)) issues.push(error(`env[${index}].value`, 'envValue'))
    seen.add(name)
    return issues
  })
}

function envNameFault(name: string, seen: ReadonlySet<string>): string | null {
  if (name === '') return 'envNameRequired'
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) return 'envName'
  if (name.toUpperCase().startsWith('SLIPWAY_')) return 'envReserved'
  return seen.has(name) ? 'envDuplicate' : null
}

/** The machine a draft is measured against: the chosen one, or for Auto the largest. */
export function machineFor(agent: string, machines: readonly Machine[]): Machine | null {
  const online = machines.filter((m) => m.online && (agent === '' || m.agent === agent))
  return online.reduce<Machine | null>((best, m) => (best === null || m.memory > best.memory ? m : best), null)
}

function validateResources(draft: Draft, machines: readonly Machine[]): Issue[] {
  // A machine whose engine is silent tells of no CPU at all: nothing is measured against it.
  const machine = machineFor(
    draft.agent,
    machines.filter((m) => m.cpus > 0),
  )
  const issues: Issue[] = []
  if (draft.agent !== '' && machines.length > 0 && !machines.some((m) => m.agent === draft.agent)) {
    issues.push(error('agent', 'agentUnknown', { agent: draft.agent }))
  }
  issues.push(...validateCpu(draft.cpu, machine), ...validateMemory(draft, machine), ...validateShm(draft))
  if (!issues.some((issue) => issue.severity === 'error')) issues.push(...validateCluster(draft, machine))
  return issues
}

/** The containers of a cluster start together, so one that does not fit makes all of them wait. */
function validateCluster({ cluster, cpu, memory }: Draft, machine: Machine | null): Issue[] {
  const each = amountToBytes(memory)
  if (!machine || !cpu || !each || !cluster || cluster < 2) return []
  const fits = Math.max(
    0,
    Math.min(
      Math.floor((machine.cpus - machine.usedCpus) / cpu),
      Math.floor((machine.memory - machine.usedMemory) / each),
    ),
  )
  return fits < cluster ? [warning('cluster', 'clusterWaits', { count: fits, total: cluster })] : []
}

function validateCpu(cpu: number | null, machine: Machine | null): Issue[] {
  const field = 'resources.cpu'
  if (cpu === null) return [error(field, 'cpuRequired')]
  if (!Number.isInteger(cpu) || cpu < 1) return [error(field, 'cpuWhole')]
  if (!machine) return []
  if (cpu > machine.cpus) return [error(field, 'cpuMax', { count: machine.cpus, agent: machine.agent })]
  const free = machine.cpus - machine.usedCpus
  return cpu > free ? [warning(field, 'cpuWaits', { count: Math.max(0, free), total: machine.cpus })] : []
}

function validateMemory(draft: Draft, machine: Machine | null): Issue[] {
  const field = 'resources.memory'
  const memory = amountToBytes(draft.memory)
  if (memory === null) return [error(field, 'memoryRequired')]
  if (memory < MIN_MEMORY) return [error(field, 'memoryMin', { bytes: MIN_MEMORY })]
  if (!machine) return []
  if (memory > machine.memory) return [error(field, 'memoryMax', { bytes: machine.memory, agent: machine.agent })]
  const free = Math.max(0, machine.memory - machine.usedMemory)
  return memory > free ? [warning(field, 'memoryWaits', { bytes: free })] : []
}

function validateShm(draft: Draft): Issue[] {
  const field = 'resources.shm'
  const memory = amountToBytes(draft.memory)
  if (draft.shm === null) return []
  const shm = amountToBytes(draft.shm)
  if (shm === null || shm <= 0) return [error(field, 'shmRequired')]
  if (memory === null) return []
  if (shm >= memory) return [error(field, 'shmMax', { bytes: memory })]
  return memory - shm < shm * 2 && memory >= GIB / 4 ? [warning(field, 'shmLarge')] : []
}

/** The shared memory that a draft comes to, in bytes. */
export function shmOf(draft: Draft): number {
  return draft.shm ? (amountToBytes(draft.shm) ?? 0) : automaticShm(amountToBytes(draft.memory) ?? 0)
}

/** What an environment needs and is not asked for: it may be launched all the same. */
function validateNeeds(draft: Draft, { title, minCpu = 0, minMemory = 0, accelerator }: Environment): Issue[] {
  const issues: Issue[] = []
  if (draft.cpu !== null && draft.cpu < minCpu)
    issues.push(warning('resources.cpu', 'needsCpu', { title, count: minCpu }))
  if ((amountToBytes(draft.memory) ?? minMemory) < minMemory)
    issues.push(warning('resources.memory', 'needsMemory', { title, bytes: minMemory }))
  if (accelerator === 'required' && draft.accelerator.mode === 'none')
    issues.push(warning('accelerator', 'needsGpu', { title }))
  return issues
}

function validateGroup(group: string, groups: ReadonlySet<string> | undefined): Issue[] {
  return group === '' || !groups || groups.has(group) ? [] : [error('group', 'groupGone', { group })]
}

function validateThreads(threads: Draft['threads']): Issue[] {
  if (threads === 'auto') return []
  const right = threads !== null && Number.isInteger(threads) && threads >= 1 && threads <= MAX_THREADS
  return right ? [] : [error('threads', 'threads', { max: MAX_THREADS })]
}

function validatePorts(tokens: readonly string[]): Issue[] {
  const values = { from: MIN_PORT, to: MAX_PORT, max: MAX_PORTS }
  const keys = {
    format: 'portFormat',
    range: 'portRange',
    order: 'portOrder',
    duplicate: 'portDuplicate',
    count: 'portCount',
  }
  return [...portFaults(tokens)].map(([index, fault]) =>
    error(`ports[${index}]`, keys[fault], { ...values, port: tokens[index] ?? '' }),
  )
}
