import { describe, expect, it } from 'vitest'
import type { Machine } from '@/api/types.gen'
import { GIB } from './amount'
import { type Draft, EMPTY_DRAFT } from './draft'
import { advise } from './waits'

const machine: Machine = {
  agent: 'local',
  online: true,
  lastHeard: '',
  engine: 'docker',
  version: '',
  hostname: 'box',
  os: 'linux',
  arch: 'amd64',
  cpus: 8,
  memory: 16 * GIB,
  usedCpus: 6,
  usedMemory: 12 * GIB,
  loadCpu: 0,
  loadMemory: 0,
  diskFree: 0,
  diskTotal: 0,
  warnings: [],
}
const told = (change: Partial<Draft>, machines = [machine]) =>
  advise({ ...EMPTY_DRAFT, memory: { value: 1, unit: 'g' }, ...change }, { machines, boards: [] }).map((i) => [
    i.field,
    i.key,
    i.values,
  ])

describe('a draft', () => {
  it("waits for what others have, one fault beyond the machine being the server's to find", () => {
    expect(told({ cpu: 2 })).toEqual([])
    expect(told({ cpu: 3 })).toEqual([['resources.cpu', 'cpuWaits', { count: 2, total: 8 }]])
    expect(told({ memory: { value: 5, unit: 'g' } })).toEqual([['resources.memory', 'memoryWaits', { bytes: 4 * GIB }]])
    expect(told({ cpu: 9 })).toEqual([])
    expect(told({ memory: { value: 17, unit: 'g' } })).toEqual([])
  })

  it('is measured against machines that are reached and whose engine answers', () => {
    expect(told({ cpu: 500 }, [{ ...machine, online: false }])).toEqual([])
    expect(told({ cpu: 9 }, [{ ...machine, cpus: 0, memory: 0 }])).toEqual([])
  })

  it('of a cluster says how many of its containers fit now, whatever else waits', () => {
    expect(told({ cluster: 2 })).toEqual([])
    expect(told({ cluster: 3 })).toEqual([['cluster', 'clusterWaits', { count: 2, total: 3 }]])
    expect(told({ cluster: 2, memory: { value: 2560, unit: 'm' } })).toEqual([
      ['cluster', 'clusterWaits', { count: 1, total: 2 }],
    ])
    expect(told({ cluster: 2, cpu: 3 }).map(([field]) => field)).toEqual(['resources.cpu', 'cluster'])
    expect(told({ cluster: 2, cpu: 99 })).toEqual([])
  })
})
