import type { Phase } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'

/** What the record of scheduling shows, as it stands in the address. An empty list or text wants all. */
export interface HistoryFilter {
  phase: string[]
  result: string[]
  from: string[]
  to: string[]
  /** Part of an id, an error code, a message or the name of a step. */
  text: string
  sort: HistorySort
}

export const historySorts = ['created', '-created', 'updated', '-updated'] as const
export type HistorySort = (typeof historySorts)[number]

export const noFilter: HistoryFilter = { phase: [], result: [], from: [], to: [], text: '', sort: 'created' }

/** Whether a filter leaves anything out. */
export function isFiltering(filter: HistoryFilter): boolean {
  return filter.text !== '' || [filter.phase, filter.result, filter.from, filter.to].some((list) => list.length > 0)
}

function textsOf(phase: Phase): string[] {
  const steps = phase.steps.flatMap((s) => [s.step, s.message ?? '', messageText(s), s.code ?? ''])
  return [phase.id, phase.code ?? '', phase.message ?? '', messageText(phase), ...steps]
}

/** The phases that fit every part of the filter, in its order. */
export function filterHistory(phases: readonly Phase[], filter: HistoryFilter): Phase[] {
  const among = (list: readonly string[], value: string) => list.length === 0 || list.includes(value)
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean)
  const by = filter.sort.endsWith('created') ? 'createdAt' : 'updatedAt'
  const sorted = phases
    .filter(
      (p) =>
        among(filter.phase, p.phase) &&
        among(filter.result, p.result) &&
        among(filter.from, p.from) &&
        among(filter.to, p.to),
    )
    .filter((p) => {
      const texts = textsOf(p).map((text) => text.toLowerCase())
      return words.every((word) => texts.some((text) => text.includes(word)))
    })
    .toSorted((a, b) => Date.parse(a[by]) - Date.parse(b[by]))
  // Phases of one millisecond stay in the order of the record, which is turned round with the rest.
  return filter.sort.startsWith('-') ? sorted.toReversed() : sorted
}

/** The values that occur, in the order in which they first do. */
export function valuesOf(phases: readonly Phase[], key: 'phase' | 'result' | 'from' | 'to'): string[] {
  return [...new Set(phases.map((p) => p[key]).filter(Boolean))]
}

const lists = ['phase', 'result', 'from', 'to'] as const

export function readHistoryFilter(params: URLSearchParams): HistoryFilter {
  const list = (name: string) => params.get(`h.${name}`)?.split(',').filter(Boolean) ?? []
  const sort = historySorts.find((s) => s === params.get('h.sort')) ?? 'created'
  return {
    phase: list('phase'),
    result: list('result'),
    from: list('from'),
    to: list('to'),
    text: params.get('h.text') ?? '',
    sort,
  }
}

export function writeHistoryFilter(params: URLSearchParams, filter: HistoryFilter): URLSearchParams {
  const next = new URLSearchParams(params)
  const put = (name: string, value: string) => (value === '' ? next.delete(`h.${name}`) : next.set(`h.${name}`, value))
  for (const name of lists) put(name, filter[name].join(','))
  put('text', filter.text)
  put('sort', filter.sort === 'created' ? '' : filter.sort)
  return next
}
