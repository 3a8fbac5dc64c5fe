import { describe, expect, it } from 'vitest'
import { readUsageState, writeUsageState } from './useUsageState'

const read = (query: string) => readUsageState(new URLSearchParams(query), '2026-03-31')

describe('the address of the usage page', () => {
  it('means the last thirty days by session when it says nothing', () => {
    expect(read('')).toEqual({
      view: 'sessions',
      span: '30d',
      from: '2026-03-02',
      to: '2026-03-31',
      by: 'session',
      metric: 'gpu',
      label: '',
    })
  })
  it('takes days of one’s own only when they make sense', () => {
    expect(read('from=2026-01-05&to=2026-01-09')).toMatchObject({
      span: 'custom',
      from: '2026-01-05',
      to: '2026-01-09',
    })
    expect(read('from=2026-01-09&to=2026-01-05').span).toBe('30d')
    expect(read('from=yesterday&to=2026-01-05&by=moon&metric=love')).toEqual(read(''))
  })
  it('lets a span replace chosen days and the other way round', () => {
    const custom = writeUsageState(new URLSearchParams('span=7d&by=label'), { from: '2026-01-05', to: '2026-01-09' })
    expect(custom.toString()).toBe('by=label&from=2026-01-05&to=2026-01-09')
    expect(writeUsageState(custom, { span: '90d' }).toString()).toBe('by=label&span=90d')
  })
  it('forgets an empty label', () => {
    expect(writeUsageState(new URLSearchParams('label=x'), { label: '' }).toString()).toBe('')
  })
})
