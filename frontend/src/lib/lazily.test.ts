import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { lazily } from './lazily'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

it('tries again where loading was cut off', async () => {
  const load = vi.fn().mockRejectedValueOnce(new Error('network changed')).mockResolvedValue('part')
  const part = lazily(load)
  await vi.runAllTimersAsync()
  expect(await part).toBe('part')
  expect(load).toHaveBeenCalledTimes(2)
})

it('gives up after three tries with the last reason', async () => {
  const load = vi.fn().mockRejectedValue(new Error('gone'))
  const part = expect(lazily(load)).rejects.toThrow('gone')
  await vi.runAllTimersAsync()
  await part
  expect(load).toHaveBeenCalledTimes(3)
})
