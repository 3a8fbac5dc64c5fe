import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import { readListState, selectSessions } from './listState'
import { isView, mostViews, usualViews, withView, type View } from './views'

const state = readListState(new URLSearchParams('q=a'))

describe('the usual views', () => {
  const ended = { status: 'TERMINATED', result: 'failure', terminatedAt: new Date().toISOString() } as const
  const sessions = [
    makeSession({ id: 'mine', owner: 'me' }),
    makeSession({ id: 'waits', owner: 'ada', status: 'PENDING' }),
    makeSession({ id: 'failed', owner: 'ada', ...ended }),
    makeSession({ id: 'well', owner: 'ada', ...ended, result: 'success' }),
    makeSession({ id: 'before', owner: 'ada', ...ended, terminatedAt: '2026-01-01T00:00:00Z' }),
  ]
  it.each([
    ['mine', ['mine']],
    ['waiting', ['waits']],
    ['failedToday', ['failed']],
  ])('%s', (key, ids) => {
    const view = usualViews.find((one) => one.key === key)
    if (!view) throw new Error(key)
    const { rows } = selectSessions(sessions, view.state, undefined, (s) => s.owner === 'me')
    expect(rows.map((s) => s.id)).toEqual(ids)
  })
})

describe('own views', () => {
  it('replace the one of their name, and the oldest where there are too many', () => {
    const names = (views: readonly View[]) => views.map((view) => view.name)
    const one = withView(withView([], 'a', state), 'b', state)
    expect(names(withView(one, ' a ', { ...state, query: 'x ' }))).toEqual(['b', 'a'])
    expect(withView(one, 'a', { ...state, query: 'x ' }).at(-1)?.state.query).toBe('x')
    const many = Array.from({ length: mostViews }, (_, i) => ({ name: `v${i}`, state }))
    expect(names(withView(many, 'new', state))).toEqual([...names(many).slice(1), 'new'])
  })
  it('are shown whatever the order of the rows is', () => {
    expect(isView({ ...state, query: 'a ', sort: { key: 'name', descending: false } }, state)).toBe(true)
    expect(isView({ ...state, group: 'owner' }, state)).toBe(false)
  })
})
