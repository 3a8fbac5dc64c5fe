import { describe, expect, it } from 'vitest'
import type { ResourceSummary } from '@/api/types.gen'
import { groupsOf, kept, leftForMe, sumOf, toggled, usualChoice, withNewer } from './panels'

const amount = (cpu: number) => ({ cpu, memory: cpu, gpu: cpu * 1000, vram: cpu })
const machine = (agent: string, online: boolean): ResourceSummary => ({
  agent,
  group: 'default',
  online,
  live: 0,
  total: amount(8),
  promised: amount(4),
  mine: amount(2),
  free: amount(3),
  load: amount(1),
  devices: [],
})

describe('sumOf', () => {
  it('adds up the machines that are reached and leaves out the others', () => {
    const sum = sumOf([machine('a', true), machine('b', true), machine('c', false)])
    expect([sum.total.cpu, sum.promised.cpu, sum.mine.gpu, sum.free.vram, sum.load.memory]).toEqual([16, 8, 4000, 6, 2])
  })
  it('is nothing where nothing is known', () => {
    expect(sumOf([]).total).toEqual(amount(0))
  })
})

describe('leftForMe', () => {
  it('is what is free, as far as a limit leaves it', () => {
    const limited = { ...machine('b', true), limit: { sessions: 0, sessionsHeld: 0, cpu: 4, memory: 0, gpu: 1000 } }
    expect(leftForMe([machine('a', true), machine('c', false)])).toEqual(amount(3))
    expect(leftForMe([limited])).toEqual({ cpu: 2, memory: 3, gpu: 0, vram: 3 })
    expect(leftForMe([machine('a', true), limited]).cpu).toBe(5)
  })
})

describe('groupsOf', () => {
  it('names each group once, the default one first', () => {
    const of = (agent: string, group: string) => ({ ...machine(agent, true), group })
    expect(groupsOf([of('a', 'zoo'), of('b', 'lab'), of('c', 'default'), of('d', 'lab')])).toEqual([
      'default',
      'lab',
      'zoo',
    ])
  })
})

describe('the choice of panels', () => {
  it('keeps its order whatever is turned on last', () => {
    const less = toggled(usualChoice.resources, usualChoice.resources, 'memory', false)
    expect(less).not.toContain('memory')
    expect(toggled(usualChoice.resources, less, 'memory', true)).toEqual(usualChoice.resources)
  })
  it('shows a panel that came after it was kept, and not one that was turned off', () => {
    expect(withNewer({ panels: ['mine'], resources: ['cpu'] })).toEqual({
      panels: ['group', 'mine', 'limit'],
      resources: ['cpu'],
    })
    expect(withNewer(kept({ panels: ['mine'], resources: ['cpu'], machine: 'far', group: 'lab' }))).toMatchObject({
      panels: ['mine'],
      resources: ['cpu'],
      machine: 'far',
      group: 'lab',
    })
    expect(withNewer(usualChoice)).toEqual(usualChoice)
  })
  it('passes over what there is no more', () => {
    expect(
      withNewer(
        JSON.parse(
          '{"panels":["gone","machine"],"resources":["cpu","gone"],"known":["machine","group","mine","limit","cpu"]}',
        ),
      ),
    ).toMatchObject({
      panels: ['machine'],
      resources: ['cpu', 'memory', 'gpu', 'vram', 'disk', 'sessions'],
    })
  })
})
