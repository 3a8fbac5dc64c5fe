import { describe, expect, it } from 'vitest'
import { fuzzyScore, fuzzySort } from './fuzzy'

const sort = (query: string, ...texts: string[]) => fuzzySort(query, texts, (text) => text)

describe('fuzzySort', () => {
  it('keeps all in their order without a query', () => {
    expect(sort(' ', 'b', 'a')).toEqual(['b', 'a'])
  })
  it('leaves out what lacks a letter or has it too early', () => {
    expect(sort('tm', 'terminal', 'mt', 'train')).toEqual(['terminal'])
  })
  it('puts beginnings of words before letters within', () => {
    expect(sort('tr', 'start', 'bert-train', 'train')).toEqual(['train', 'bert-train', 'start'])
  })
  it('puts letters that follow each other before scattered ones', () => {
    expect(sort('ogs', 'dog xyzs', 'logs')).toEqual(['logs', 'dog xyzs'])
  })
  it('takes the shorter of two that fit alike', () => {
    expect(sort('gpu', 'gpus of the lab', 'gpus')).toEqual(['gpus', 'gpus of the lab'])
  })
  it('takes no notice of blanks and capitals, and reads Korean', () => {
    expect(fuzzyScore('New S', 'new session')).toBeGreaterThan(0)
    expect(sort('세션', '새 세션', '폴더')).toEqual(['새 세션'])
  })
  it('finds the best of several ways to fit', () => {
    // The second "se" follows a blank; taking the first one would lose it.
    expect(fuzzyScore('ses', 'close session')).toBeGreaterThan(fuzzyScore('ses', 'closes essays') ?? 0)
  })
})
