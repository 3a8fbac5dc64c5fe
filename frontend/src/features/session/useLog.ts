import { useEffect, useRef, useState } from 'react'

import { asProblem, type ApiProblem, open } from '@/api/client'
import { LogBuffer, type LogLine } from './logBuffer'

interface LogState {
  lines: LogLine[]
  dropped: number
  /** The log is being read for the first time. */
  loading: boolean
  /** The stream ended as it should: nothing more will come. */
  complete: boolean
  /** Set when there is nothing to show because of it. */
  problem: ApiProblem | undefined
  /** The stream broke and is being opened again. */
  broken: boolean
}

const nothing: LogState = { lines: [], dropped: 0, loading: true, complete: false, problem: undefined, broken: false }
const flushEvery = 80
/** A stream that is open and says nothing for so long has nothing to say yet, in milliseconds. */
const quietAfter = 300
const retryAfter = 1500

/** Reads a stream to its end, telling of new text at most every few frames. */
async function readAll(response: Response, buffer: LogBuffer, changed: () => void, signal: AbortSignal): Promise<void> {
  const reader = response.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let timer: ReturnType<typeof setTimeout> | undefined
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined
      if (!signal.aborted) changed()
    }, flushEvery)
  }
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      buffer.push(decoder.decode(value, { stream: true }))
      soon()
    }
    buffer.push(decoder.decode())
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Follows a kernel's log for as long as it is shown. A stream that breaks is
 * opened again and read from its beginning, so that no line is lost or doubled.
 * A change of `stage` (the session started, or ended) does the same.
 */
export function useLog(id: string, kernel: string, follow: boolean, stage: string): LogState & { retry: () => void } {
  const [state, setState] = useState<LogState>(nothing)
  const [round, setRound] = useState(0)
  const shown = useRef('')

  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    let timer: ReturnType<typeof setTimeout> | undefined
    let quiet: ReturnType<typeof setTimeout> | undefined
    if (shown.current !== `${id}/${kernel}`) setState(nothing)
    shown.current = `${id}/${kernel}`

    const run = async () => {
      const buffer = new LogBuffer()
      const show = (change: Partial<LogState>) => {
        if (!signal.aborted)
          setState({ ...nothing, loading: false, lines: buffer.lines(), dropped: buffer.dropped(), ...change })
      }
      try {
        const response = await open('logs', { path: { id }, query: { kernel, follow, timestamps: true }, signal })
        quiet = setTimeout(() => setState((old) => ({ ...old, loading: false })), quietAfter)
        await readAll(response, buffer, () => show({}), signal)
        show({ complete: true })
      } catch (error) {
        clearTimeout(quiet)
        if (signal.aborted) return
        const problem = asProblem(error)
        setState((old) =>
          old.lines.length > 0 ? { ...old, loading: false, broken: true } : { ...nothing, loading: false, problem },
        )
        // A refusal stays a refusal; a cut is worth another try.
        if (problem.status < 400 && follow) timer = setTimeout(() => void run(), retryAfter)
      }
    }
    void run()
    return () => {
      clearTimeout(timer)
      clearTimeout(quiet)
      abort.abort()
    }
  }, [id, kernel, follow, stage, round])

  return { ...state, retry: () => setRound((n) => n + 1) }
}
