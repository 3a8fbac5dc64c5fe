import { useCallback, useEffect, useRef, useState } from 'react'
import { useNavigate, useSearchParams } from 'react-router'
import { useRecents, useSessionBook } from '@/api/hooks'
import { isLive } from '@/lib/status'
import { recallDraft, rememberDraft } from './address'
import { type Draft, EMPTY_DRAFT, freeName, fromSpec, type Step, STEPS } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'

/** The address follows the draft when nothing was entered for this long, in milliseconds. */
const SETTLE = 400

export type Change = (change: Partial<Draft> | ((draft: Draft) => Draft)) => void

interface DraftUse {
  draft: Draft
  change: Change
  reset: () => void
  step: Step
  go: (step: Step) => void
  /** The view is about to be left: the address is no longer this one's to write. */
  leave: () => void
  /** The steps that were left once: what is missing there may be pointed out. */
  left: ReadonlySet<Step>
  /** Where the draft came from the history, and that entry is gone. */
  recentMissing: boolean
  /** Counts the drafts that came from elsewhere: an address, the history, a reset. */
  origin: number
}

const isStep = (text: string | null): text is Step => (STEPS as readonly (string | null)[]).includes(text)

/** The draft in the address after change, with everything else of the address kept. */
function withDraft(params: URLSearchParams, draft: Draft): URLSearchParams {
  const next = new URLSearchParams(params)
  const text = encodeDraft(draft)
  if (text) next.set('draft', text)
  else next.delete('draft')
  next.delete('recent')
  return next
}

/**
 * The draft of the launcher. It lives in the address of the view, so it survives a reload and can be kept as a
 * bookmark. Only what addressable lets through gets there.
 */
export function useDraft(): DraftUse {
  const [params] = useSearchParams()
  const rewrite = useRewrite()
  const inAddress = params.get('draft') ?? ''
  const [draft, setDraft] = useState(() => recallDraft(inAddress) ?? decodeDraft(inAddress))
  const [origin, setOrigin] = useState(0)
  const [left, setLeft] = useState<ReadonlySet<Step>>(() => new Set(inAddress || params.has('recent') ? STEPS : []))
  const written = useRef(inAddress)
  // What was written and is not the address yet: a busy page takes a while, and may have been given the next by then.
  const underWay = useRef<string[]>([])
  const leaving = useRef(false)
  const step = isStep(params.get('step')) ? (params.get('step') as Step) : 'type'

  // Back and forward, or a link: the address has changed by other hands.
  useEffect(() => {
    const own = underWay.current.indexOf(inAddress)
    underWay.current = underWay.current.slice(own + 1)
    if (own >= 0 || inAddress === written.current) return
    written.current = inAddress
    setDraft(recallDraft(inAddress) ?? decodeDraft(inAddress))
    setOrigin((count) => count + 1)
    if (inAddress) setLeft(new Set(STEPS))
  }, [inAddress])

  useEffect(() => {
    const text = encodeDraft(draft)
    rememberDraft(text, draft)
    if (text === written.current) return
    const write = () => {
      if (leaving.current) return
      written.current = text
      underWay.current.push(text)
      rewrite((old) => withDraft(old, draft), true)
    }
    const keep = () => {
      const next = withDraft(new URLSearchParams(location.search), draft)
      history.replaceState(history.state, '', `${location.pathname}?${next.toString()}`)
    }
    const timer = setTimeout(write, SETTLE)
    window.addEventListener('pagehide', keep)
    return () => {
      clearTimeout(timer)
      window.removeEventListener('pagehide', keep)
    }
  }, [draft, rewrite])

  const change = useCallback<Change>((next) => {
    setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))
  }, [])
  const go = useCallback(
    (to: Step) => {
      setLeft((old) => new Set(to === 'confirm' ? STEPS : [...old, step]))
      rewrite(
        (old) => {
          old.set('step', to)
          return old
        },
        false,
        true,
      )
    },
    [rewrite, step],
  )
  const reset = useCallback(() => {
    written.current = ''
    setDraft(EMPTY_DRAFT)
    setOrigin((count) => count + 1)
    setLeft(new Set())
    rewrite(() => new URLSearchParams(), true)
  }, [rewrite])

  const leave = useCallback(() => {
    leaving.current = true
  }, [])
  const load = useCallback((next: Draft) => {
    setDraft(next)
    setOrigin((count) => count + 1)
  }, [])
  const recentMissing = useRecent(params.get('recent'), load, rewrite)
  return { draft, change, reset, step, go, leave, left, recentMissing, origin }
}

/**
 * With atOnce the page shows the new address before anything else is pressed: a second press of Next is one step
 * further.
 */
type Rewrite = (change: (params: URLSearchParams) => URLSearchParams, replace: boolean, atOnce?: boolean) => void

/**
 * Changes the query of the address as it stands at that moment. What a render
 * remembers of it may be older: a step taken just before would be taken back.
 */
function useRewrite(): Rewrite {
  const navigate = useNavigate()
  return useCallback(
    (change, replace, atOnce = false) => {
      const next = change(new URLSearchParams(window.location.search))
      void navigate({ search: next.toString() }, { replace, flushSync: atOnce })
    },
    [navigate],
  )
}

/** Fills the draft from the entry of the launch history that the address names, once. */
function useRecent(id: string | null, setDraft: (draft: Draft) => void, rewrite: Rewrite): boolean {
  const recents = useRecents().data
  const sessions = useSessionBook().data
  const [missing, setMissing] = useState(false)
  useEffect(() => {
    if (!id || !recents || !sessions) return
    const recent = recents.find((entry) => entry.id === id)
    setMissing(!recent)
    if (recent) {
      const names = Object.values(sessions)
        .filter((s) => isLive(s.status))
        .map((s) => s.name)
      const draft = { ...fromSpec(recent.spec), count: recent.count, owner: recent.owner ?? '' }
      setDraft({ ...draft, name: freeName(draft.name, new Set(names)) })
    }
    rewrite((old) => {
      old.delete('recent')
      return old
    }, true)
  }, [id, recents, sessions, setDraft, rewrite])
  return missing
}
