import { act, renderHook } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { now, realLength, setClock } from './now'
import { useNow } from './useNow'

const wall = Date.parse('2026-05-20T08:00:00Z')
const minute = 60_000

describe('now', () => {
  beforeEach(() => {
    setClock()
    vi.useFakeTimers({ now: wall })
  })
  afterEach(() => {
    setClock()
    vi.useRealTimers()
  })

  it('is the time of the computer unless a clock is chosen', () => {
    expect(now()).toBe(wall)
    expect(realLength(minute)).toBe(minute)
  })

  it('runs as fast as a demo does', () => {
    setClock({ speed: 60, real: wall - 1000, shown: wall })
    expect(now()).toBe(wall + minute)
    vi.advanceTimersByTime(1000)
    expect(now()).toBe(wall + 2 * minute)
    expect(realLength(minute)).toBe(1000)
  })

  it('is that of the computer too where a demo from before does not tell its own', () => {
    setClock({ speed: Number.NaN, real: Date.parse(''), shown: wall })
    expect(now()).toBe(wall)
  })

  it('is what ticking views show, at once and then every second', () => {
    const { result } = renderHook(() => useNow())
    act(() => setClock({ speed: 60, real: wall, shown: wall + minute }))
    expect(result.current).toBe(wall + minute)
    act(() => void vi.advanceTimersByTime(1000))
    expect(result.current).toBe(wall + 2 * minute)
  })
})
