import { QueryClient } from '@tanstack/react-query'
import { beforeEach, describe, expect, it } from 'vitest'
import { appendSample, applyAnswer, applyEvent, type SessionBook, type UsageBook } from './book'
import { keys } from './keys'
import { makeAgent, makeBoard, makeDevice, makeMachine, makeSession, testSettings } from './testing/session'
import type { Agent, DeviceBoard, DevicePoint, Event, Operation, Session, Usage, Wait } from './types.gen'

const usage = (session: string, at: string): Usage => ({
  session,
  at,
  cpu: 1,
  memory: 2,
  memLimit: 3,
  netRx: 0,
  netTx: 0,
  diskRead: 0,
  diskWrite: 0,
  pids: 1,
  gpus: [],
})

function event(change: Partial<Event>): Event {
  return { epoch: 'e', seq: 1, ...change }
}

const first = event({
  snapshot: {
    sessions: [makeSession({ id: 'a', revision: 3 })],
    machines: [makeMachine()],
    recents: [],
    projects: [],
    settings: testSettings,
    version: { version: '1', commit: 'c', go: 'g', os: 'linux', arch: 'amd64' },
    devices: [makeBoard()],
    presets: [],
    agents: [makeAgent()],
    operations: [],
  },
})

let client: QueryClient
const book = () => client.getQueryData<SessionBook>(keys.sessions)

beforeEach(() => {
  client = new QueryClient()
})

describe('applyEvent', () => {
  it('takes a snapshot in place of everything known', () => {
    client.setQueryData(keys.sessions, { old: makeSession({ id: 'old' }) })
    applyEvent(client, first)
    expect(Object.keys(book() ?? {})).toEqual(['a'])
    expect(client.getQueryData(keys.settings)).toEqual(testSettings)
  })
  it('lets no answer that was asked for before a snapshot take the place of what events tell', async () => {
    let answer: (agents: Agent[]) => void = () => {}
    const asked = client.fetchQuery({
      queryKey: keys.agents,
      queryFn: ({ signal }) => {
        expect(signal.aborted).toBe(false)
        return new Promise<Agent[]>((resolve) => (answer = resolve))
      },
    })
    applyEvent(client, first)
    applyEvent(client, event({ agent: makeAgent({ live: 2 }) }))
    answer([makeAgent({ live: 1 })])
    await asked
    expect(client.getQueryData<Agent[]>(keys.agents)?.map((a) => a.live)).toEqual([2])
  })
  it('puts an agent and an operation in the place of the older one', () => {
    applyEvent(client, first)
    applyEvent(client, event({ agent: makeAgent({ name: 'lab', local: false }) }))
    applyEvent(client, event({ agent: makeAgent({ name: 'lab', local: false, live: 2 }) }))
    expect(client.getQueryData<Agent[]>(keys.agents)?.map((a) => [a.name, a.live])).toEqual([
      ['local', 0],
      ['lab', 2],
    ])
    const add: Operation = {
      id: 'o1',
      kind: 'agent-add',
      subject: 'ssh://lab',
      state: 'running',
      steps: [],
      startedAt: '2026-01-02T03:04:05Z',
      revision: 2,
    }
    applyEvent(client, event({ operation: add }))
    applyEvent(client, event({ operation: { ...add, state: 'done', revision: 4 } }))
    applyEvent(client, event({ operation: { ...add, state: 'waiting', revision: 3 } }))
    expect(client.getQueryData<Operation[]>(keys.operations)?.map((o) => o.state)).toEqual(['done'])
  })
  it('changes one session and leaves the others the same objects', () => {
    applyEvent(client, first)
    applyEvent(client, event({ session: makeSession({ id: 'b' }) }))
    const before = book()?.b
    applyEvent(client, event({ session: makeSession({ id: 'a', name: 'other', revision: 4 }) }))
    expect(book()?.a?.name).toBe('other')
    expect(book()?.b).toBe(before)
  })
  it('keeps the newer record when an older one comes late', () => {
    applyEvent(client, first)
    applyEvent(client, event({ session: makeSession({ id: 'a', name: 'late', revision: 2 }) }))
    expect(book()?.a?.name).toBe('calm-reef')
  })
  it('keeps why a session waits when the answer to its launch comes after the event', () => {
    const wait: Wait = { code: 'scheduler_wait_resources', message: 'needs 4 CPUs', position: 1 }
    applyEvent(client, first)
    applyEvent(client, event({ session: makeSession({ id: 'w', status: 'PENDING', revision: 1, wait }) }))
    applyAnswer(client, makeSession({ id: 'w', status: 'PENDING', revision: 1 }))
    expect(book()?.w?.wait).toEqual(wait)
    applyAnswer(client, makeSession({ id: 'w', status: 'SCHEDULED', revision: 2 }))
    expect(book()?.w?.status).toBe('SCHEDULED')
  })

  it('puts a session that ended among the finished ones, if they were fetched', () => {
    applyEvent(client, first)
    const ended = makeSession({ id: 'a', status: 'TERMINATED', revision: 9 })
    applyEvent(client, event({ session: ended }))
    expect(client.getQueryData(keys.finished)).toBeUndefined()
    client.setQueryData<Record<string, Session>>(keys.finished, {})
    applyEvent(client, event({ session: { ...ended, revision: 10 } }))
    expect(client.getQueryData<SessionBook>(keys.finished)?.a?.status).toBe('TERMINATED')
  })
  it('forgets a session whose record is gone', () => {
    applyEvent(client, first)
    applyEvent(client, event({ removed: 'a' }))
    expect(book()).toEqual({})
  })
  it('keeps the newest sample of each session and lengthens the series that are shown', () => {
    applyEvent(client, first)
    client.setQueryData(keys.usage('a'), [usage('a', '2026-01-01T00:00:00Z')])
    applyEvent(client, event({ usage: [usage('a', '2026-01-01T00:00:02Z'), usage('b', '2026-01-01T00:00:02Z')] }))
    expect(Object.keys(client.getQueryData<UsageBook>(keys.latestUsage) ?? {})).toEqual(['a', 'b'])
    expect(client.getQueryData<Usage[]>(keys.usage('a'))).toHaveLength(2)
    expect(client.getQueryData(keys.usage('b'))).toBeUndefined()
  })
  it('replaces the machine of one agent', () => {
    applyEvent(client, first)
    applyEvent(client, event({ machine: makeMachine({ usedCpus: 7 }) }))
    expect(client.getQueryData(keys.machines)).toMatchObject([{ agent: 'local', usedCpus: 7 }])
  })
})

describe('appendSample', () => {
  it('drops a sample that is not newer', () => {
    const samples = [usage('a', '2026-01-01T00:00:02Z')]
    expect(appendSample(samples, usage('a', '2026-01-01T00:00:02Z'))).toBe(samples)
  })
})

describe('devices', () => {
  const boards = () => client.getQueryData<DeviceBoard[]>(keys.devices)
  const points = (span: string) => client.getQueryData<DevicePoint[]>(keys.deviceHistory('local', 'GPU-0', span))
  const measured = (second: number, util: number, online = true) =>
    applyEvent(
      client,
      event({ devices: makeBoard([makeDevice({ util })], { online, at: new Date(second * 1000).toISOString() }) }),
    )

  it('replace what is known of their agent and of no other', () => {
    applyEvent(client, first)
    applyEvent(client, event({ devices: makeBoard([], { agent: 'lab' }) }))
    measured(10, 500)
    expect(boards()?.map((b) => [b.agent, b.devices[0]?.util])).toEqual([
      ['local', 500],
      ['lab', undefined],
    ])
  })
  it('go on with a history that was fetched, one point a minute in the long one', () => {
    client.setQueryData(keys.deviceHistory('local', 'GPU-0', '1h'), [])
    client.setQueryData(keys.deviceHistory('local', 'GPU-0', '24h'), [])
    for (const second of [0, 2, 4]) measured(second, second)
    expect(points('1h')?.map((p) => p.util)).toEqual([0, 2, 4])
    expect(points('24h')).toHaveLength(1)
  })
  it('draw nothing while the agent is not reached or nobody looks', () => {
    measured(0, 1)
    expect(points('1h')).toBeUndefined()
    client.setQueryData(keys.deviceHistory('local', 'GPU-0', '1h'), [])
    measured(2, 1, false)
    expect(points('1h')).toEqual([])
  })
})
