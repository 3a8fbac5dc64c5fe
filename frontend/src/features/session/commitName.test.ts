import { expect, it } from 'vitest'
import { COMMIT_NAME } from '@/api/rules.gen'
import { nameFault } from '@/lib/names'
import { commitNameOf } from './commitName'

it('offers an image a name after the session, under the rule for such names', () => {
  expect(commitNameOf('train-a.2')).toBe('train-a-2')
  for (const name of ['a', 'a.b', '', `${'x'.repeat(31)}.yz`, 'work_1'])
    expect(nameFault(COMMIT_NAME, commitNameOf(name))).toBe('')
})
