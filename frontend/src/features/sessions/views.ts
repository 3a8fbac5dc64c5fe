import { defaultSort, type ListState } from './listState'

/** A filter of the list with its tabs and grouping, under a name. */
export interface View {
  name: string
  state: ListState
}

const plain: ListState = { type: 'all', state: 'live', query: '', sort: defaultSort, group: 'none' }

/** The views that there always are; their names are texts. */
export const usualViews = [
  { key: 'mine', state: { ...plain, query: 'owner:@me' } },
  { key: 'waiting', state: { ...plain, query: 'status:pending' } },
  { key: 'failedToday', state: { ...plain, state: 'finished', query: 'result:failure ended:today' } },
] as const satisfies readonly { key: string; state: ListState }[]

/** Most own views, and most letters of a name. */
export const mostViews = 20
export const longestName = 32

/** Whether the list shows a view. Another order of its rows is still the same view. */
export function isView(state: ListState, view: ListState): boolean {
  const same = (['type', 'state', 'group'] as const).every((key) => state[key] === view[key])
  return same && state.query.trim() === view.query.trim()
}

/** Keeps what the list shows under a name; a view of that name is replaced. */
export function withView(views: readonly View[], name: string, state: ListState): View[] {
  const kept: View = { name: name.trim().slice(0, longestName), state: { ...state, query: state.query.trim() } }
  return [...views.filter((view) => view.name !== kept.name), kept].slice(-mostViews)
}
