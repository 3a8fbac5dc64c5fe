import { describe, expect, it } from 'vitest'
import { makeAccount } from '@/api/testing/session'
import type { Account } from '@/api/types.gen'
import { amountOf, daysBetween, groupRows, honesty, stacks, sumUp } from './accounts'

const hour = 3_600_000
const row = (change: Partial<Account>) => makeAccount({ start: '2026-03-01T00:00:00', ...change })
const rows = [
  row({
    session: 'a',
    name: 'train',
    allocGpuMs: 4 * hour,
    busyGpuMs: 3 * hour,
    energyDynamic: 1e9,
    energyIdle: 8e8,
    vramPeak: 5,
    coveredMs: 90,
    estimatedMs: 5,
    gapMs: 5,
  }),
  row({ session: 'a', name: 'train', start: '2026-03-02T00:00:00', allocGpuMs: hour, vramPeak: 9 }),
  row({ session: 'b', name: 'train', allocGpuMs: 2 * hour, allocCpuMs: 8 * hour }),
  row({ kind: 'other', busyGpuMs: hour, energyDynamic: 3.6e9 }),
]

describe('accounts', () => {
  it('add up, but for the peak, in the unit of each metric', () => {
    const sums = sumUp(rows)
    expect([amountOf(sums, 'gpu'), amountOf(sums, 'busy'), amountOf(sums, 'cpu'), sums.vramPeak]).toEqual([7, 4, 8, 9])
    expect(amountOf(sums, 'energy')).toBeCloseTo(1.5)
  })
  it('say how much was measured, and nothing where there was nothing to measure', () => {
    expect(honesty(sumUp(rows))).toEqual({ measured: 0.9, estimated: 0.05, missed: 0.05 })
    expect(honesty(sumUp([]))).toBeUndefined()
  })
  it('tell sessions of one name apart and order by what was granted of devices', () => {
    expect(groupRows(rows, 'session').map((g) => [g.kind, g.session, g.sums.allocGpuMs / hour])).toEqual([
      ['session', 'a', 5],
      ['session', 'b', 2],
      ['other', undefined, 0],
    ])
  })
  it('put days in their order, each kind by itself', () => {
    expect(groupRows(rows, 'day').map((g) => [g.name, g.kind])).toEqual([
      ['2026-03-02', 'session'],
      ['2026-03-01', 'session'],
      ['2026-03-01', 'other'],
    ])
  })
})

describe('the layers of the chart', () => {
  const days = daysBetween('2026-03-01', '2026-03-03')
  it('have a value for every day, also where nothing was used', () => {
    expect(days).toEqual(['2026-03-01', '2026-03-02', '2026-03-03'])
    expect(stacks(groupRows(rows, 'session'), days, 'gpu', 'session').map((s) => [s.key, s.values])).toEqual([
      ['session a', [4, 1, 0]],
      ['session b', [2, 0, 0]],
    ])
  })
  it('show what was no session in layers of their own', () => {
    expect(stacks(groupRows(rows, 'session'), days, 'energy', 'session').map((s) => s.kind)).toEqual([
      'session',
      'other',
    ])
  })
  it('join the smaller groups', () => {
    const many = Array.from({ length: 9 }, (_, i) =>
      row({ session: `s${i}`, name: `s${i}`, allocGpuMs: (i + 1) * hour }),
    )
    const layers = stacks(groupRows(many, 'session'), ['2026-03-01'], 'gpu', 'session')
    expect(layers).toHaveLength(8)
    expect(layers.at(-1)).toMatchObject({ key: 'rest', values: [3] })
  })
})

describe('busy time', () => {
  it('is within what was allocated, row by row', () => {
    const rows = [
      row({ session: 'a', allocGpuMs: hour, busyGpuMs: 2 * hour, allocCpuMs: hour, cpuMs: 3 * hour }),
      row({ session: 'b', allocGpuMs: hour, busyGpuMs: hour / 2, allocCpuMs: hour, cpuMs: hour }),
    ]
    expect(sumUp(rows)).toMatchObject({ withinGpuMs: 1.5 * hour, busyGpuMs: 2.5 * hour, withinCpuMs: 2 * hour })
  })
})

it('puts devices in the order of their numbers', () => {
  const names = ['GPU 10 · X', 'GPU 2 · X', 'GPU 0 · X']
  const groups = groupRows(
    names.map((deviceName, i) => row({ session: 'a', device: deviceName, deviceName, allocGpuMs: i * hour })),
    'device',
  )
  expect(groups.map((group) => group.name)).toEqual(names.toReversed())
})
