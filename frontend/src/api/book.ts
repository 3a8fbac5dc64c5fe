import type { QueryClient } from '@tanstack/react-query'
import { isRunning } from '@/lib/operation'
import { isLive } from '@/lib/status'
import { keys } from './keys'
import type {
  Agent,
  DeviceBoard,
  DevicePoint,
  DeviceState,
  Event,
  Machine,
  Operation,
  Session,
  Snapshot,
  Usage,
} from './types.gen'

/** Sessions by id. */
export type SessionBook = Record<string, Session>
export type UsageBook = Record<string, Usage>

/** How many samples of a session are kept for its charts: an hour at one every two seconds. */
const usageKept = 1800

/** What a snapshot tells whole and events change afterwards. */
const told = [
  'machines',
  'recents',
  'projects',
  'settings',
  'version',
  'devices',
  'presets',
  'agents',
  'operations',
] as const

/** Puts one event of the channel into Query, so that every view that shows it changes. */
export function applyEvent(client: QueryClient, event: Event): void {
  if (event.snapshot) applySnapshot(client, event.snapshot)
  if (event.session) applySession(client, event.session)
  if (event.removed) removeSession(client, event.removed)
  if (event.usage) applyUsage(client, event.usage)
  if (event.machine) applyMachine(client, event.machine)
  if (event.recents) client.setQueryData(keys.recents, event.recents)
  if (event.projects) client.setQueryData(keys.projects, event.projects)
  if (event.settings) client.setQueryData(keys.settings, event.settings)
  if (event.devices) applyDevices(client, event.devices)
  if (event.presets) client.setQueryData(keys.presets, event.presets)
  if (event.agent) applyAgent(client, event.agent)
  if (event.operation) applyOperation(client, event.operation)
}

function applySnapshot(client: QueryClient, snapshot: Snapshot): void {
  const book: SessionBook = {}
  const usage: UsageBook = {}
  for (const session of snapshot.sessions) {
    book[session.id] = session
    if (session.usage) usage[session.id] = session.usage
  }
  client.setQueryData(keys.sessions, book)
  client.setQueryData(keys.latestUsage, usage)
  for (const name of told) {
    // An answer that is on its way is older than the events that follow, and would take their place.
    void client.cancelQueries({ queryKey: keys[name], exact: true })
    client.setQueryData(keys[name], snapshot[name])
  }
  // What was fetched before the gap may have changed meanwhile.
  void client.invalidateQueries({ queryKey: keys.finished })
  void client.invalidateQueries({ queryKey: ['usage'] })
  void client.invalidateQueries({ queryKey: ['device-history'] })
  void client.invalidateQueries({ queryKey: ['accounts'] })
  void client.invalidateQueries({ queryKey: ['history'] })
  void client.invalidateQueries({ queryKey: ['session'] })
}

/** Puts a session where it is shown, unless what is there is newer. */
function applySession(client: QueryClient, session: Session): void {
  const before = client.getQueryData<SessionBook>(keys.sessions)?.[session.id]
  if (before && before.revision > session.revision) return
  client.setQueryData<SessionBook>(keys.sessions, (book) => (book ? { ...book, [session.id]: session } : book))
  client.setQueryData<Session>(keys.session(session.id), (old) => (old ? session : old))
  if (!isLive(session.status)) {
    client.setQueryData<SessionBook>(keys.finished, (book) => (book ? { ...book, [session.id]: session } : book))
  }
  if (before?.status !== session.status || before.endImage?.size !== session.endImage?.size) {
    void client.invalidateQueries({ queryKey: keys.history(session.id) })
    void client.invalidateQueries({ queryKey: keys.apps(session.id) })
    void client.invalidateQueries({ queryKey: keys.resources })
  }
}

/**
 * Puts the session that a request has answered with where it is shown. Why a
 * session waits and how far a pull is are told by events alone, which leave the
 * revision as it is: an answer that comes after them must not wipe them out.
 */
export function applyAnswer(client: QueryClient, session: Session): void {
  const before = client.getQueryData<SessionBook>(keys.sessions)?.[session.id]
  if (!before || before.revision < session.revision) applySession(client, session)
}

function removeSession(client: QueryClient, id: string): void {
  const without = (book: SessionBook | undefined) => {
    if (!book || !(id in book)) return book
    return Object.fromEntries(Object.entries(book).filter(([key]) => key !== id))
  }
  client.setQueryData<SessionBook>(keys.sessions, without)
  client.setQueryData<SessionBook>(keys.finished, without)
  client.removeQueries({ queryKey: keys.session(id) })
}

function applyUsage(client: QueryClient, samples: Usage[]): void {
  client.setQueryData<UsageBook>(keys.latestUsage, (book) => {
    const next: UsageBook = { ...book }
    for (const sample of samples) next[sample.session] = sample
    return next
  })
  for (const sample of samples) {
    client.setQueryData<Usage[]>(keys.usage(sample.session), (old) => (old ? appendSample(old, sample) : old))
  }
}

/** Adds a sample in the order of time; one that is not newer than the last is dropped. */
export function appendSample(samples: Usage[], sample: Usage): Usage[] {
  const last = samples.at(-1)
  if (last && Date.parse(last.at) >= Date.parse(sample.at)) return samples
  return [...samples.slice(-(usageKept - 1)), sample]
}

/** How close two points of a device's history may be, in ms: beyond the last hour there is one a minute. */
const pointsApart = { '1h': 1_900, '24h': 30_000 } as const

function applyDevices(client: QueryClient, board: DeviceBoard): void {
  client.setQueryData<DeviceBoard[]>(keys.devices, (boards = []) => {
    const known = boards.some((b) => b.agent === board.agent)
    return known ? boards.map((b) => (b.agent === board.agent ? board : b)) : [...boards, board]
  })
  if (!board.online) return
  for (const device of board.devices) {
    for (const [span, apart] of Object.entries(pointsApart)) {
      client.setQueryData<DevicePoint[]>(keys.deviceHistory(board.agent, device.uuid, span), (old) =>
        old ? appendPoint(old, pointOf(device, board.at), apart) : old,
      )
    }
  }
}

/** The measured part of a device's state; what it does not tell stays absent. */
function pointOf(device: DeviceState, at: string): DevicePoint {
  const { util, memoryUsed, power, temperature } = device
  return { at, util, memoryUsed, power, temperature }
}

/** Adds a point unless the last one is younger than it by less than apart ms. */
function appendPoint(points: DevicePoint[], point: DevicePoint, apart: number): DevicePoint[] {
  const last = points.at(-1)
  if (last && Date.parse(point.at) - Date.parse(last.at) < apart) return points
  return [...points.slice(-(usageKept - 1)), point]
}

/** Puts an agent where it is shown. What its sessions used while it was away is asked for once it is back. */
function applyAgent(client: QueryClient, agent: Agent): void {
  const before = client.getQueryData<Agent[]>(keys.agents)?.find((a) => a.name === agent.name)
  if (before && before.connection.state !== 'connected' && agent.connection.state === 'connected')
    void client.invalidateQueries({ queryKey: ['usage'] })
  client.setQueryData<Agent[]>(keys.agents, (agents = []) => {
    const known = agents.some((a) => a.name === agent.name)
    return known ? agents.map((a) => (a.name === agent.name ? agent : a)) : [...agents, agent]
  })
}

/** Puts an operation where it is shown, newest first, unless what is there is newer. */
export function applyOperation(client: QueryClient, operation: Operation): void {
  const before = client.getQueryData<Operation[]>(keys.operations)?.find((o) => o.id === operation.id)
  if (operation.kind.startsWith('image-') && !isRunning(operation) && (!before || isRunning(before))) {
    void client.invalidateQueries({ queryKey: keys.images })
    void client.invalidateQueries({ queryKey: keys.environments })
  }
  client.setQueryData<Operation[]>(keys.operations, (operations = []) => {
    const known = operations.find((o) => o.id === operation.id)
    if (!known) return [operation, ...operations]
    return known.revision > operation.revision
      ? operations
      : operations.map((o) => (o.id === operation.id ? operation : o))
  })
}

function applyMachine(client: QueryClient, machine: Machine): void {
  client.setQueryData<Machine[]>(keys.machines, (machines = []) => {
    const known = machines.some((m) => m.agent === machine.agent)
    return known ? machines.map((m) => (m.agent === machine.agent ? machine : m)) : [...machines, machine]
  })
}
