import { useCallback, useEffect, useRef, useState, type Dispatch } from 'react'
import { tellGone, tellKernel } from './api'
import { Kernel, type KernelState } from './kernel/Kernel'
import type { Action } from './sheet'

/** How often the page tells that its Python is there: the session counts a busy one as use. */
const tellEvery = 10_000

interface KernelHold {
  state: KernelState
  detail: string
  interruptible: boolean
  run: (cells: { id: string; source: string }[]) => void
  interrupt: () => void
  restart: () => void
  answer: (id: string, line: string) => void
}

/** One Python for one notebook, for as long as it is open. */
export function useKernel(dir: string, dispatch: Dispatch<Action>): KernelHold {
  const [state, setState] = useState<{ state: KernelState; detail: string }>({ state: 'fetching', detail: '' })
  const [life, setLife] = useState(0)
  const kernel = useRef<Kernel>(null)

  useEffect(() => {
    let over = false
    const unlessOver = (what: () => void) => {
      if (!over) what()
    }
    const made = new Kernel(dir, {
      state: (next, detail) => unlessOver(() => setState({ state: next, detail })),
      queued: (id, count) => dispatch({ do: 'queued', id, count }),
      started: (id) => unlessOver(() => dispatch({ do: 'started', id })),
      emitted: (id, what) => unlessOver(() => dispatch({ do: 'emitted', id, what })),
      ended: (id) => dispatch({ do: 'ended', id }),
      asked: (id, prompt) => unlessOver(() => dispatch({ do: 'asked', id, prompt })),
    })
    kernel.current = made
    return () => {
      over = true
      made.end()
    }
  }, [dir, dispatch, life])

  useTelling(state.state === 'busy')
  return {
    ...state,
    interruptible: typeof SharedArrayBuffer === 'function' && crossOriginIsolated,
    run: useCallback((cells) => {
      for (const { id, source } of cells) kernel.current?.run(id, source)
    }, []),
    interrupt: useCallback(() => kernel.current?.interrupt(), []),
    restart: useCallback(() => setLife((n) => n + 1), []),
    answer: useCallback(
      (id, line) => {
        dispatch({ do: 'answered', id })
        kernel.current?.answer(line)
      },
      [dispatch],
    ),
  }
}

/** Tells the session that a Python is there, and whether it works. */
function useTelling(busy: boolean): void {
  const [id] = useState(() => crypto.randomUUID?.() ?? String(Math.random()).slice(2))
  useEffect(() => {
    const tell = () => void tellKernel(id, busy ? 'busy' : 'idle').catch(() => undefined) // the next one may arrive
    tell()
    const timer = setInterval(tell, tellEvery)
    return () => clearInterval(timer)
  }, [id, busy])
  useEffect(() => {
    const gone = () => tellGone(id)
    window.addEventListener('pagehide', gone)
    return () => {
      window.removeEventListener('pagehide', gone)
      gone()
    }
  }, [id])
}
