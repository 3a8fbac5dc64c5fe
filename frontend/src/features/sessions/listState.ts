import { useCallback, useEffect, useMemo, useRef } from 'react'
import { useSearchParams } from 'react-router'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { type IsMine, parseFilter, type TitleOf } from './filter'
import { comparators, type SortKey } from './order'

/** The tabs, in their order: every type that a session may have. */
export const types = ['all', 'interactive', 'batch', 'inference', 'system'] as const
export type TypeTab = (typeof types)[number]
export type StateTab = 'live' | 'finished'

/** What the rows may be grouped by. */
export const groupings = ['none', 'agent', 'owner'] as const
export type Grouping = (typeof groupings)[number]

export interface Sort {
  key: SortKey
  descending: boolean
}

/** What the list shows, as it stands in the address. */
export interface ListState {
  type: TypeTab
  state: StateTab
  query: string
  sort: Sort
  group: Grouping
}

export const defaultSort: Sort = { key: 'created', descending: true }

function readSort(text: string | null): Sort {
  const descending = text?.startsWith('-') ?? false
  const key = descending ? (text ?? '').slice(1) : (text ?? '')
  return key in comparators ? { key: key as SortKey, descending } : defaultSort
}

export function readListState(params: URLSearchParams): ListState {
  return {
    type: types.find((type) => type === params.get('type')) ?? 'all',
    state: params.get('state') === 'finished' ? 'finished' : 'live',
    query: params.get('q') ?? '',
    sort: readSort(params.get('sort')),
    group: groupings.find((group) => group === params.get('group')) ?? 'none',
  }
}

/** Writes a change of the list into the parameters, leaving out what is as usual. */
export function writeListState(params: URLSearchParams, change: Partial<ListState>): URLSearchParams {
  const next = new URLSearchParams(params)
  const put = (name: string, value: string, usual: string) =>
    value === usual ? next.delete(name) : next.set(name, value)
  if (change.type !== undefined) put('type', change.type, 'all')
  if (change.state !== undefined) put('state', change.state, 'live')
  if (change.query !== undefined) put('q', change.query, '')
  if (change.sort !== undefined) put('sort', `${change.sort.descending ? '-' : ''}${change.sort.key}`, '-created')
  if (change.group !== undefined) put('group', change.group, 'none')
  return next
}

export function useListState(): [ListState, (change: Partial<ListState>) => void] {
  const [params, setParams] = useSearchParams()
  const state = useMemo(() => readListState(params), [params])
  // What a render remembers may be older than the address: a filter that was typed would take back the sort.
  const latest = useRef({ params, setParams })
  useEffect(() => {
    latest.current = { params, setParams }
  }, [params, setParams])
  const change = useCallback((next: Partial<ListState>) => {
    const { current } = latest
    current.params = writeListState(current.params, next)
    current.setParams(current.params, { replace: true })
  }, [])
  return [state, change]
}

interface Selected {
  rows: Session[]
  /** How many sessions of the chosen state each type tab holds, before the filter. */
  counts: Record<TypeTab, number>
}

/** Chooses and orders the sessions that the list shows: group by group, where they are grouped. */
export function selectSessions(sessions: Session[], state: ListState, titleOf?: TitleOf, isMine?: IsMine): Selected {
  const counts: Record<TypeTab, number> = { all: 0, interactive: 0, batch: 0, inference: 0, system: 0 }
  const matches = parseFilter(state.query, titleOf, isMine)
  const rows: Session[] = []
  for (const session of sessions) {
    if (isLive(session.status) !== (state.state === 'live')) continue
    counts.all++
    if (session.type in counts) counts[session.type]++
    if (state.type !== 'all' && session.type !== state.type) continue
    if (matches(session)) rows.push(session)
  }
  const compare = comparators[state.sort.key]
  const sign = state.sort.descending ? -1 : 1
  const { group } = state
  const byGroup = (a: Session, b: Session) => (group === 'none' ? 0 : a[group].localeCompare(b[group]))
  rows.sort(
    (a, b) =>
      byGroup(a, b) || sign * compare(a, b) || b.createdAt.localeCompare(a.createdAt) || a.id.localeCompare(b.id),
  )
  return { rows, counts }
}
