import { describe, expect, it } from 'vitest'
import { nameFault } from '@/lib/names'
import { COMMIT_NAME, FOLDER_NAME, SECRET_NAME, SESSION_NAME } from './rules.gen'

describe('the name of a session', () => {
  it.each([
    ['abc', 'A name needs at least 4 characters.'],
    ['x'.repeat(65), 'A name can have at most 64 characters.'],
    ['-abcd', /^A name must start/],
    ['.abcd', /^A name must start/],
    ['abcd-', /^A name must end/],
    ['ab cd', /^A name can contain only/],
    ['naïve', /^A name can contain only/],
    ['세션이름1', /^A name must start/],
  ])('may not be %s', (name, text) => expect(nameFault(SESSION_NAME, name)).toMatch(text))

  it.each(['abcd', 'x'.repeat(64), 'train-1.a_b'])('may be %s', (name) => {
    expect(nameFault(SESSION_NAME, name)).toBe('')
  })
})

it('of a folder is free in the home of a session', () => {
  for (const name of ['data', 'a.b', '-x', '.cache', 'x'.repeat(64)]) expect(nameFault(FOLDER_NAME, name)).toBe('')
  for (const name of ['', '..', 'a b', 'x'.repeat(65)]) expect(nameFault(FOLDER_NAME, name)).not.toBe('')
  for (const name of ['.ssh', '.bashrc', '.slipway-x']) expect(nameFault(FOLDER_NAME, name)).toContain(name)
})

it('of a customized image has 4 to 32 letters, digits, _ and -', () => {
  for (const name of ['abcd', 'A_b-1', '-abc', 'x'.repeat(32)]) expect(nameFault(COMMIT_NAME, name)).toBe('')
  for (const name of ['abc', 'x'.repeat(33), 'a.bcd', 'a bcd', 'äbcd'])
    expect(nameFault(COMMIT_NAME, name)).not.toBe('')
})

it('of a variable says whether its value is secret', () => {
  expect(['API_KEY', 'hf_token', 'DB_PASS', 'MY_PW', 'PIN'].every((name) => SECRET_NAME.test(name))).toBe(true)
  expect(['EPOCHS', 'PASSES', 'SPINE', 'PWX'].some((name) => SECRET_NAME.test(name))).toBe(false)
})
