import dayjs from 'dayjs'
import { useCallback, useMemo } from 'react'
import { useSearchParams } from 'react-router'
import { groupings, metrics, type Grouping, type Metric } from './accounts'

export const spans = ['7d', '30d', '90d'] as const
export type Span = (typeof spans)[number] | 'custom'

/** What the accounts are of. */
export const views = ['sessions', 'services'] as const
export type View = (typeof views)[number]

/** What the page shows, as it stands in the address. Days are YYYY-MM-DD, both counted. */
export interface UsageState {
  view: View
  span: Span
  from: string
  to: string
  by: Grouping
  metric: Metric
  label: string
}

const isDay = (text: string | null): text is string =>
  text !== null && /^\d{4}-\d{2}-\d{2}$/.test(text) && dayjs(text).isValid()
const among = <T extends string>(list: readonly T[], text: string | null, usual: T): T =>
  list.find((value) => value === text) ?? usual

export function readUsageState(params: URLSearchParams, today: string): UsageState {
  const from = params.get('from')
  const to = params.get('to')
  const custom = isDay(from) && isDay(to) && from <= to
  const span = custom ? 'custom' : among(spans, params.get('span'), '30d')
  return {
    view: among(views, params.get('view'), 'sessions'),
    span,
    from: custom
      ? from
      : dayjs(today)
          .subtract(Number.parseInt(span, 10) - 1, 'day')
          .format('YYYY-MM-DD'),
    to: custom ? to : today,
    by: among(groupings, params.get('by'), 'session'),
    metric: among(metrics, params.get('metric'), 'gpu'),
    label: params.get('label') ?? '',
  }
}

export type UsageChange =
  | { view: View }
  | { span: Exclude<Span, 'custom'> }
  | { from: string; to: string }
  | { by: Grouping }
  | { metric: Metric }
  | { label: string }

export interface UsageProps {
  state: UsageState
  change: (change: UsageChange) => void
}

export function writeUsageState(params: URLSearchParams, change: UsageChange): URLSearchParams {
  const next = new URLSearchParams(params)
  if ('span' in change) ['from', 'to'].forEach((name) => next.delete(name))
  if ('from' in change) next.delete('span')
  for (const [name, value] of Object.entries(change)) {
    if (value === '') next.delete(name)
    else next.set(name, value)
  }
  return next
}

export function useUsageState(): [UsageState, (change: UsageChange) => void] {
  const [params, setParams] = useSearchParams()
  const today = dayjs().format('YYYY-MM-DD')
  const state = useMemo(() => readUsageState(params, today), [params, today])
  const change = useCallback(
    (next: UsageChange) => setParams((old) => writeUsageState(old, next), { replace: true }),
    [setParams],
  )
  return [state, change]
}
