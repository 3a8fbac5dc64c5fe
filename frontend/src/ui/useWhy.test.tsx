import { renderHook } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { pullTimeLeft, useWhy, type StatusSubject } from './useWhy'

const subject = (change: Partial<StatusSubject>): StatusSubject => ({
  status: 'RUNNING',
  reason: '',
  type: 'interactive',
  exitCode: null,
  ...change,
})

describe('useWhy', () => {
  const { result } = renderHook(() => useWhy())
  it.each([
    [
      'the wait of a pending session',
      { status: 'PENDING', wait: { message: 'needs 4 CPUs', position: 1 } },
      'needs 4 CPUs',
    ],
    [
      'the progress of a pull',
      { status: 'PULLING', pull: { current: 1024, total: 2048, rate: 512, layersDone: 1, layers: 3 } },
      '1 KiB of 2 KiB · 512 B/s · 2 s left',
    ],
    [
      'a pull of unknown size',
      { status: 'PULLING', pull: { current: 1024, total: 0, rate: 0, layersDone: 0, layers: 0 } },
      '1 KiB',
    ],
    ['the reason of an end', { status: 'ERROR', reason: 'oom-killed' }, 'Out of memory'],
    [
      'the exit code of a batch that failed',
      { status: 'TERMINATED', reason: 'task-failed', type: 'batch', exitCode: 3 },
      'Task failed · exit code 3',
    ],
    ['a reason that is not known yet, as it came', { status: 'TERMINATED', reason: 'moon-phase' }, 'moon-phase'],
    ['the error where there is no reason', { status: 'ERROR', error: { message: 'It broke.' } }, 'It broke.'],
    ['nothing of what simply runs', {}, ''],
  ])('says %s', (_name, change, text) => expect(result.current(subject(change))).toBe(text))
})

describe('pullTimeLeft', () => {
  it('makes no guess without a size or a rate', () => {
    expect(pullTimeLeft({ current: 1, total: 0, rate: 5, layersDone: 0, layers: 0 })).toBeUndefined()
    expect(pullTimeLeft({ current: 1, total: 9, rate: 0, layersDone: 0, layers: 0 })).toBeUndefined()
  })
})
