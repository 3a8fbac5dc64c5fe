import { describe, expect, it } from 'vitest'
import { nameIssue } from './name'

describe('nameIssue', () => {
  it.each([
    ['train-a', undefined],
    ['a_b.c-9', undefined],
    ['abc', 'short'],
    ['x'.repeat(65), 'long'],
    ['x'.repeat(64), undefined],
    ['-train', 'edges'],
    ['train.', 'edges'],
    ['two words', 'body'],
    ['naïve', 'body'],
  ])('%s: %s', (name, issue) => expect(nameIssue(name)).toBe(issue))
})
