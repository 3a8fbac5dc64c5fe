import { describe, expect, it } from 'vitest'
import { commitNameOf, isCommitName } from './commitName'

describe('names of customized images', () => {
  it('have 4 to 32 letters, digits, _ and -', () => {
    expect(['abcd', 'A_b-1', '-abc', 'x'.repeat(32)].every(isCommitName)).toBe(true)
    expect(['abc', 'x'.repeat(33), 'a.bcd', 'a bcd', 'äbcd', ''].some(isCommitName)).toBe(false)
  })

  it('are offered after the session, under that rule', () => {
    expect(commitNameOf('train-a.2')).toBe('train-a-2')
    for (const name of ['a', 'a.b', '', `${'x'.repeat(31)}.yz`, 'work_1'])
      expect(isCommitName(commitNameOf(name))).toBe(true)
  })
})
