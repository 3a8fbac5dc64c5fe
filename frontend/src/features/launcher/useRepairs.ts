import { useCallback, useState } from 'react'
import type { Lack, Repair } from './repair'
import type { Change } from './useDraft'

export interface RepairsUse {
  /** What was repaired of this draft, oldest first. */
  done: readonly Repair[]
  /** Images that shall be pulled though no environment offers them. */
  pulled: ReadonlySet<string>
  repair: (repair: Repair) => void
  undo: (repair: Repair) => void
  /** Takes an image that is pulled when the session starts. */
  pull: (lack: Lack) => void
}

const NOTHING = { done: [] as Repair[], pulled: new Set<string>() as ReadonlySet<string> }

/** What was repaired of a draft. It is forgotten when the draft is another: origin counts those. */
export function useRepairs(change: Change, origin: number): RepairsUse {
  const [state, setState] = useState({ origin, ...NOTHING })
  const now = state.origin === origin ? state : { origin, ...NOTHING }
  const { done, pulled } = now
  const repair = useCallback(
    (chosen: Repair) => {
      change(chosen.apply)
      setState({ origin, done: [...done, chosen], pulled })
    },
    [change, origin, done, pulled],
  )
  const undo = useCallback(
    (taken: Repair) => {
      change(taken.revert)
      setState({
        origin,
        done: done.filter((one) => one !== taken),
        pulled: new Set([...pulled].filter((image) => taken.kind !== 'image' || image !== taken.asked)),
      })
    },
    [change, origin, done, pulled],
  )
  const pull = useCallback(
    ({ asked }: Lack) => {
      const kept: Repair = { kind: 'image', asked, now: asked, apply: (draft) => draft, revert: (draft) => draft }
      setState({ origin, done: [...done, kept], pulled: new Set([...pulled, asked]) })
    },
    [origin, done, pulled],
  )
  return { done, pulled, repair, undo, pull }
}
