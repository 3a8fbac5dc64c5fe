import { act, renderHook } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { readStored, useStored, writeStored } from './stored'

describe('useStored', () => {
  it('survives and is seen by every user of the key', () => {
    const one = renderHook(() => useStored('key', 'usual'))
    const two = renderHook(() => useStored('key', 'usual'))
    expect(one.result.current[0]).toBe('usual')
    act(() => one.result.current[1]('chosen'))
    expect(two.result.current[0]).toBe('chosen')
    expect(readStored('key', '')).toBe('chosen')
  })
  it('falls back where the store holds nonsense', () => {
    localStorage.setItem('slipway.bad', '{')
    expect(readStored('bad', 5)).toBe(5)
  })
  it('goes on where the store is full', () => {
    vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new DOMException('full', 'QuotaExceededError')
    })
    expect(() => writeStored('key', 1)).not.toThrow()
  })
})
