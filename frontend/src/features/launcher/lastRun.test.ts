import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import type { Session, Spec } from '@/api/types.gen'
import { GIB } from './amount'
import { EMPTY_DRAFT } from './draft'
import { enoughFor, lastRunOf } from './lastRun'

const ended = (name: string, peak: number, day: number, spec: Partial<Spec> = {}, more: Partial<Session> = {}) => {
  const session = makeSession({
    name,
    type: spec.type ?? 'interactive',
    status: 'TERMINATED',
    result: 'success',
    terminatedAt: `2026-01-0${day}T00:00:00Z`,
    peakMemory: peak * GIB,
    ...more,
  })
  const resources = { cpu: 1, memory: 64 * GIB }
  return { ...session, spec: { ...session.spec, image: 'a:1', resources, ...spec } }
}
const draft = { ...EMPTY_DRAFT, image: 'a:1' }

describe('the last run of a draft', () => {
  it('is the newest of its name, or else of its image', () => {
    const all = [ended('train', 9, 2), ended('train-x1', 7, 3), ended('training', 30, 4), ended('other', 5, 1)]
    const last = { session: { name: 'train-x1' }, peak: 7 * GIB, memory: 64 * GIB }
    expect(lastRunOf({ ...draft, name: 'train' }, all)).toMatchObject(last)
    expect(lastRunOf({ ...draft, name: 'new' }, all)?.session.name).toBe('training')
    expect(lastRunOf(draft, all)?.session.name).toBe('training')
    expect(lastRunOf({ ...draft, image: 'b:1' }, all)).toBeNull()
  })

  it('does the same work, was measured, and did not fail', () => {
    const batch = { type: 'batch' as const, command: 'python a.py' }
    const all = [
      ended('one', 9, 1, batch),
      ended('two', 8, 2, { ...batch, command: 'python b.py' }),
      ended('lost', 0, 3, batch),
      ended('crashed', 1, 4, batch, { result: 'failure' }),
    ]
    expect(lastRunOf({ ...draft, type: 'batch', command: 'python a.py\n' }, all)?.session.name).toBe('one')
    expect(lastRunOf(draft, all)).toBeNull()
  })

  it('needs a quarter more than its peak', () => {
    expect([enoughFor(9 * GIB), enoughFor(GIB / 10), enoughFor(2 * GIB)]).toEqual([11.5 * GIB, GIB / 2, 2.5 * GIB])
  })
})
