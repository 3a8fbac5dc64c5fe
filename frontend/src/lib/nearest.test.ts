import { expect, it } from 'vitest'
import { nearest } from './nearest'

it.each([
  ['runing', 'RUNNING'],
  ['rnuning', 'RUNNING'],
  ['eror', 'ERROR'],
  ['x', undefined],
  ['colour', undefined],
])('takes %s for %s', (word, meant) => expect(nearest(word, ['PENDING', 'RUNNING', 'ERROR', 'TERMINATED'])).toBe(meant))
