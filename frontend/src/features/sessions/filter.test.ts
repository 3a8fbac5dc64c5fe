import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import { parseFilter } from './filter'

const torch = makeSession({ name: 'train-a', image: 'pytorch/pytorch:2.6', status: 'RUNNING', type: 'batch' })
const plain = makeSession({ name: 'notes', image: 'python:3.12', status: 'PENDING' })
const names = (query: string) => [torch, plain].filter(parseFilter(query)).map((s) => s.name)

describe('parseFilter', () => {
  it('lets everything through when there is nothing to look for', () => expect(names('   ')).toEqual(['train-a', 'notes']))
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
  it('takes an unknown property as a word', () => expect(names('pytorch:2.6')).toEqual(['train-a']))
})
