import { act, renderHook, waitFor } from '@testing-library/react'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { refusal } from '@/api/testing/render'
import { useLog } from './useLog'

interface Stream {
  response: Response
  write: (text: string) => void
  end: () => void
  break: () => void
}

function stream(): Stream {
  let control: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (c) => {
      control = c
    },
  })
  return {
    response: new Response(body),
    write: (text) => control?.enqueue(new TextEncoder().encode(text)),
    end: () => control?.close(),
    break: () => control?.error(new TypeError('network error')),
  }
}

const texts = (lines: { text: string }[]) => lines.map((l) => l.text)

describe('useLog', () => {
  afterEach(() => vi.useRealTimers())

  it('shows lines as they come and says when that is all', async () => {
    const log = stream()
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(log.response)
    const { result } = renderHook(() => useLog('s', 'main1', true, 'live'))
    expect(result.current.loading).toBe(true)
    log.write('one\ntw')
    await waitFor(() => expect(texts(result.current.lines)).toEqual(['one', 'tw']))
    log.write('o\n')
    log.end()
    await waitFor(() => expect(result.current.complete).toBe(true))
    expect(texts(result.current.lines)).toEqual(['one', 'two'])
  })
  it('is empty, and no longer loading, while nothing has been printed', async () => {
    const log = stream()
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(log.response)
    const { result } = renderHook(() => useLog('s', 'main1', true, 'live'))
    await waitFor(() => expect(result.current.loading).toBe(false))
    expect(result.current.lines).toHaveLength(0)
    log.write('at last\n')
    await waitFor(() => expect(texts(result.current.lines)).toEqual(['at last']))
  })
  it('keeps what it has when the stream breaks, and reads again without doubling a line', async () => {
    const first = stream()
    const second = stream()
    vi.spyOn(globalThis, 'fetch').mockResolvedValueOnce(first.response).mockResolvedValueOnce(second.response)
    const { result } = renderHook(() => useLog('s', 'main1', true, 'live'))
    first.write('one\ntwo\n')
    await waitFor(() => expect(result.current.lines).toHaveLength(2))
    first.break()
    await waitFor(() => expect(result.current.broken).toBe(true))
    expect(result.current.lines).toHaveLength(2)
    second.write('one\ntwo\nthree\n')
    await waitFor(() => expect(texts(result.current.lines)).toEqual(['one', 'two', 'three']))
    expect(result.current.broken).toBe(false)
  })
  it('does not ask again what was refused, until it is told to', async () => {
    const ask = vi
      .spyOn(globalThis, 'fetch')
      .mockImplementation(async () => refusal(404, 'session_use_not-found', 'There is no log.'))
    const { result } = renderHook(() => useLog('s', 'main1', true, 'live'))
    await waitFor(() => expect(result.current.problem?.code).toBe('session_use_not-found'))
    expect(ask).toHaveBeenCalledTimes(1)
    act(() => result.current.retry())
    await waitFor(() => expect(ask).toHaveBeenCalledTimes(2))
  })
  it('stops reading when it is no longer shown', async () => {
    const log = stream()
    const ask = vi.spyOn(globalThis, 'fetch').mockResolvedValue(log.response)
    const { unmount } = renderHook(() => useLog('s', 'main1', true, 'live'))
    await waitFor(() => expect(ask).toHaveBeenCalled())
    unmount()
    expect((ask.mock.calls[0]?.[1] as RequestInit).signal?.aborted).toBe(true)
  })
})
