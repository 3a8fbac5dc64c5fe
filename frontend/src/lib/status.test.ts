import { describe, expect, it } from 'vitest'
import { isLive, statusFamily, statusRank } from './status'

describe('statuses', () => {
  it('takes one that it does not know for live', () => {
    expect(statusFamily('RESTARTING')).toBe('unknown')
    expect(isLive('RESTARTING')).toBe(true)
  })
  it('knows the three ends', () =>
    expect(['TERMINATED', 'CANCELLED', 'ERROR'].map(isLive)).toEqual([false, false, false]))
  it('orders by the course of a life', () => expect(statusRank('PENDING')).toBeLessThan(statusRank('RUNNING')))
})
