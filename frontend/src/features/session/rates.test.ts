import { describe, expect, it } from 'vitest'
import type { Usage } from '@/api/types.gen'
import { toColumns } from './rates'

const start = Date.parse('2026-01-01T00:00:00Z')
const sample = (second: number, netRx: number): Usage => ({
  session: 's',
  at: new Date(start + second * 1000).toISOString(),
  cpu: 1,
  memory: 100,
  memLimit: 200,
  netRx,
  netTx: 0,
  diskRead: 0,
  diskWrite: 0,
  pids: 1,
  gpus: [],
})

describe('toColumns', () => {
  it('turns counters into bytes a second', () => {
    expect(toColumns([sample(0, 0), sample(2, 1000), sample(4, 1500)], 0).netRx).toEqual([null, 500, 250])
  })
  it('gives no rate where a counter went back', () => {
    expect(toColumns([sample(0, 900), sample(2, 100)], 0).netRx).toEqual([null, null])
  })
  it('breaks the lines where samples are missing', () => {
    const columns = toColumns([sample(0, 0), sample(100, 1000)], 0)
    expect(columns.cpu).toEqual([1, null, 1])
    expect(columns.netRx).toEqual([null, null, null])
  })
  it('leaves out what lies before the range but still uses it for the first rate', () => {
    const columns = toColumns([sample(0, 0), sample(2, 1000)], start / 1000 + 1)
    expect(columns.times).toHaveLength(1)
    expect(columns.netRx).toEqual([500])
  })
})
