import { describe, expect, it } from 'vitest'
import type { Phase } from '@/api/types.gen'
import { filterHistory, isFiltering, noFilter, readHistoryFilter, valuesOf, writeHistoryFilter } from './historyFilter'

const phase = (id: string, change: Partial<Phase> = {}): Phase => ({
  id,
  session: 's',
  phase: 'prepare',
  result: 'SUCCESS',
  from: 'SCHEDULED',
  to: 'PREPARED',
  attempts: 1,
  steps: [],
  createdAt: '2026-01-01T00:00:00Z',
  updatedAt: '2026-01-01T00:00:09Z',
  ...change,
})
const phases = [
  phase('p1', { phase: 'schedule', from: 'PENDING', to: 'SCHEDULED' }),
  phase('p2', {
    createdAt: '2026-01-01T00:00:02Z',
    updatedAt: '2026-01-01T00:00:03Z',
    result: 'FAILURE',
    code: 'engine_call_timeout',
    message: 'The registry is silent.',
  }),
  phase('p3', {
    createdAt: '2026-01-01T00:00:04Z',
    steps: [{ step: 'attach-devices', result: 'SUCCESS', message: 'by CDI', startedAt: '' }],
  }),
]
const ids = (change: Partial<typeof noFilter>) => filterHistory(phases, { ...noFilter, ...change }).map((p) => p.id)

describe('filterHistory', () => {
  it('leaves all when nothing is asked', () => {
    expect(ids({})).toEqual(['p1', 'p2', 'p3'])
    expect(isFiltering(noFilter)).toBe(false)
  })
  it('joins its parts by and, the values of one part by or', () => {
    expect(ids({ phase: ['prepare', 'schedule'], result: ['SUCCESS'] })).toEqual(['p1', 'p3'])
    expect(ids({ from: ['PENDING'], to: ['PREPARED'] })).toEqual([])
  })
  it.each([
    ['p2', ['p2']],
    ['CALL_TIME', ['p2']],
    ['registry silent', ['p2']],
    ['attach cdi', ['p3']],
    ['nothing', []],
  ])('finds %s in ids, codes, messages and steps', (text, found) => {
    expect(ids({ text })).toEqual(found)
  })
  it('sorts by when a phase was made or changed last, either way', () => {
    expect(ids({ sort: '-created' })).toEqual(['p3', 'p2', 'p1'])
    expect(ids({ sort: 'updated' })).toEqual(['p2', 'p1', 'p3'])
  })
  it('keeps the order of the record among phases of one millisecond, either way', () => {
    const at = (fraction: string) => ({
      createdAt: `2026-01-01T00:00:05.0001${fraction}Z`,
      updatedAt: `2026-01-01T00:00:06.0001${fraction}Z`,
    })
    const close = [phase('schedule'), phase('prepare', at('2')), phase('terminate', at('41'))]
    for (const by of ['created', 'updated'] as const) {
      expect(
        filterHistory(close, { ...noFilter, sort: by })
          .map((p) => p.id)
          .join(),
      ).toBe(by === 'created' ? 'schedule,prepare,terminate' : 'prepare,terminate,schedule')
      expect(
        filterHistory(close, { ...noFilter, sort: `-${by}` })
          .map((p) => p.id)
          .join(),
      ).toBe(by === 'created' ? 'terminate,prepare,schedule' : 'schedule,terminate,prepare')
    }
  })
  it('offers only values that occur', () => {
    expect(valuesOf(phases, 'result')).toEqual(['SUCCESS', 'FAILURE'])
  })
})

describe('the address of the record', () => {
  it('comes back as it was written and keeps strangers', () => {
    const filter = { ...noFilter, result: ['FAILURE', 'STALE'], text: 'a b', sort: '-updated' as const }
    const params = writeHistoryFilter(new URLSearchParams('view=history'), filter)
    expect(params.get('view')).toBe('history')
    expect(readHistoryFilter(params)).toEqual(filter)
    expect(writeHistoryFilter(params, noFilter).toString()).toBe('view=history')
  })
})
