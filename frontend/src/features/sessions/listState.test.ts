import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import { readListState, selectSessions, writeListState } from './listState'

const read = (query: string) => readListState(new URLSearchParams(query))

describe('the address of the list', () => {
  it('means running sessions of every type, newest first, when it says nothing', () => {
    expect(read('')).toEqual({
      type: 'all',
      state: 'live',
      query: '',
      sort: { key: 'created', descending: true },
      group: 'none',
    })
  })
  it('forgets values it does not know', () => {
    expect(read('type=cluster&state=gone&sort=-colour')).toEqual(read(''))
  })
  it('comes back as it was written and keeps strangers', () => {
    const params = writeListState(new URLSearchParams('apps=x'), {
      type: 'batch',
      state: 'finished',
      query: 'a b',
      sort: { key: 'name', descending: false },
      group: 'owner',
    })
    expect(params.get('apps')).toBe('x')
    expect(readListState(params)).toEqual({
      type: 'batch',
      state: 'finished',
      query: 'a b',
      sort: { key: 'name', descending: false },
      group: 'owner',
    })
  })
  it('leaves out what is as usual', () => {
    const params = writeListState(new URLSearchParams('state=finished&q=x&group=agent'), {
      group: 'none',
      state: 'live',
      query: '',
      sort: { key: 'created', descending: true },
    })
    expect(params.toString()).toBe('')
  })
})

describe('selectSessions', () => {
  const running = makeSession({ id: 'a', name: 'b-run', createdAt: '2026-01-01T00:00:00Z' })
  const batch = makeSession({
    id: 'b',
    name: 'a-batch',
    type: 'batch',
    status: 'PENDING',
    createdAt: '2026-01-02T00:00:00Z',
  })
  const done = makeSession({ id: 'c', status: 'TERMINATED' })
  it('parts live from finished and counts each type before the filter', () => {
    const { rows, counts } = selectSessions([running, batch, done], { ...read(''), query: 'a-batch' })
    expect(rows.map((s) => s.id)).toEqual(['b'])
    expect(counts).toEqual({ all: 2, interactive: 1, batch: 1, inference: 0, system: 0 })
  })
  it('orders by the chosen column both ways', () => {
    expect(selectSessions([running, batch], read('sort=name')).rows.map((s) => s.id)).toEqual(['b', 'a'])
    expect(selectSessions([running, batch], read('sort=-name')).rows.map((s) => s.id)).toEqual(['a', 'b'])
  })
  it('puts together what is of one machine, in the chosen order', () => {
    const far = makeSession({ id: 'd', name: 'aa', agent: 'lab' })
    const near = makeSession({ id: 'e', name: 'c', agent: 'desk' })
    const also = makeSession({ id: 'f', name: 'b', agent: 'lab' })
    const ids = (query: string) => selectSessions([also, near, far], read(query)).rows.map((s) => s.id)
    expect(ids('sort=name&group=agent')).toEqual(['e', 'd', 'f'])
    expect(ids('sort=-name&group=agent')).toEqual(['e', 'f', 'd'])
  })
  it('puts the newest first where the order is equal', () => {
    expect(selectSessions([running, batch], read('sort=agent')).rows.map((s) => s.id)).toEqual(['b', 'a'])
  })
})
