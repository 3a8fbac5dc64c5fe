import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import type { Session } from '@/api/types.gen'
import { parseFilter, suggest, unknownIn } from './filter'

const torch = makeSession({ name: 'train-a', image: 'pytorch/pytorch:2.6', status: 'RUNNING', type: 'batch' })
const plain = makeSession({ name: 'notes', image: 'python:3.12', status: 'PENDING' })
const names = (query: string) => [torch, plain].filter(parseFilter(query)).map((s) => s.name)

describe('parseFilter', () => {
  it('lets everything through when there is nothing to look for', () =>
    expect(names('   ')).toEqual(['train-a', 'notes']))
  it('finds a word in name and image whatever its case', () => {
    expect(names('TRAIN')).toEqual(['train-a'])
    expect(names('python')).toEqual(['notes'])
  })
  it('asks only the named property', () => {
    expect(names('status:running')).toEqual(['train-a'])
    expect(names('name:py')).toEqual([])
  })
  it('needs every term to hold', () => expect(names('type:batch image:python:3')).toEqual([]))
  it('leaves out what a minus names', () => expect(names('-status:pending')).toEqual(['train-a']))
  it('keeps blanks in quotes together', () => {
    const waiting = makeSession({ name: 'x', spec: { image: 'i', resources: {}, command: 'python train.py --lr 3' } })
    expect(parseFilter('command:"train.py --lr"')(waiting)).toBe(true)
    expect(parseFilter('command:"train.py  --lr"')(waiting)).toBe(false)
  })
  it('finds the machine and the owner by a word that begins them', () => {
    const far = makeSession({ agent: 'lab', owner: 'ada.lovelace' })
    const found = (query: string) => parseFilter(query)(far)
    expect(['lab', 'ada', 'ADA.love', 'la', 'lovelace', 'ad'].map(found)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ])
    expect(parseFilter('me')(makeSession({ owner: 'me' }))).toBe(true)
    expect(parseFilter('m')(makeSession({ owner: 'me', agent: 'far', name: 'x', image: 'x', id: 'x' }))).toBe(false)
  })
  it("finds what is one's own, and what ended today", () => {
    const isMine = (s: Session) => s.agent === 'lab'
    const mine = makeSession({ agent: 'lab', terminatedAt: new Date().toISOString() })
    const other = makeSession({ terminatedAt: '2026-01-02T04:00:00Z' })
    const found = (query: string) => [mine, other].map(parseFilter(query, undefined, isMine))
    expect(found('owner:@me')).toEqual([true, false])
    expect(found('-owner:@me')).toEqual([false, true])
    expect(found('ended:today')).toEqual([true, false])
    expect(found('ended:2026-01-0')).toEqual([false, true])
  })
  it('takes an unknown property as a word', () => expect(names('pytorch:2.6')).toEqual(['train-a']))
})

describe('what a filter names that there is not', () => {
  const all = [torch, plain, makeSession({ agent: 'workstation', tags: ['two words'] })]
  const meant = (query: string) => {
    const unknown = unknownIn(query, all)
    return unknown && [unknown.property, unknown.word, unknown.meant?.word, unknown.meant?.query]
  }
  it.each<[string, (string | undefined)[] | undefined]>([
    ['status:runing', ['status', 'runing', 'running', 'status:running']],
    ['a -STATUS:Eror b', ['status', 'eror', 'error', 'a -status:error b']],
    ['status:run', undefined],
    ['status:', undefined],
    ['type:jupyter', ['type', 'jupyter', undefined, undefined]],
    ['agent:workstaton', ['agent', 'workstaton', 'workstation', 'agent:workstation']],
    ['tag:"two wrds"', ['tag', 'two wrds', 'two words', 'tag:"two words"']],
    ['statu:running', ['', 'statu', 'status', 'status:running']],
    ['pytorch:2.6', undefined],
    ['owner:@me', undefined],
    ['id:nothing', undefined],
    ['runing', undefined],
  ])('%s', (query, expected) => expect(meant(query)).toEqual(expected))
})

describe('suggest', () => {
  const tagged = makeSession({ id: 'c', name: 'third', image: 'python:3.12', tags: ['paper', 'two words'] })
  const all = [torch, plain, tagged]
  const terms = (query: string) => suggest(query, all).map((s) => s.term)
  it('offers properties for the beginning of a word', () => expect(terms('sta')).toEqual(['status:']))
  it('offers the values of a property, the most frequent first, with how many have each', () => {
    expect(suggest('image:', all)).toEqual([
      { query: 'image:python:3.12 ', term: 'image:python:3.12', count: 2 },
      { query: 'image:pytorch/pytorch:2.6 ', term: 'image:pytorch/pytorch:2.6', count: 1 },
    ])
  })
  it('keeps what stands before, a minus, and quotes values with blanks', () => {
    expect(suggest('train -tag:tw', all)).toEqual([
      { query: 'train -tag:"two words" ', term: '-tag:"two words"', count: 1 },
    ])
  })
  it('offers a filter that finds what it says', () => {
    for (const { query, count } of suggest('tag:', all)) expect(all.filter(parseFilter(query))).toHaveLength(count ?? 0)
  })
  it('offers folders of data, not the cache that nearly all have', () => {
    const mount = (name: string) => ({ folder: name, name, target: `/home/work/${name}` })
    expect(suggest('folder:', [makeSession({ folders: [mount('sets'), mount('.cache')] })])).toEqual([
      { query: 'folder:sets ', term: 'folder:sets', count: 1 },
    ])
  })
  it('offers nothing for a property with values without number', () => expect(terms('id:')).toEqual([]))
})

describe('environments', () => {
  const titleOf = (image: string) => (image.startsWith('python') ? 'Python 3.12' : '')
  const sessions = [makeSession({ id: 'a', image: 'python:3.12' }), makeSession({ id: 'b', image: 'other:1' })]
  it('are filtered by their titles', () => {
    expect(sessions.filter(parseFilter('environment:"python 3"', titleOf)).map((s) => s.id)).toEqual(['a'])
  })
  it('are suggested, those of none left out', () => {
    expect(suggest('environment:', sessions, titleOf)).toEqual([
      { query: 'environment:"Python 3.12" ', term: 'environment:"Python 3.12"', count: 1 },
    ])
  })
})
