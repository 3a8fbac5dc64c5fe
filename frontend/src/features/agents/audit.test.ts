import { describe, expect, it } from 'vitest'
import { hostOf, matches, peopleOf, times, type Act } from './audit'

const act: Act = {
  entry: {
    at: '2026-01-02T03:04:05Z',
    owner: 'ann',
    role: 'user',
    from: '10.0.0.7:41234',
    method: 'ReadFile',
    session: 'abcdefghij01',
    target: '/data/Train.csv',
    outcome: 'ok',
  },
  key: 0,
  word: 'Read a file of',
  session: 'calm-reef',
}
const any = { text: '', person: '', failed: false, security: false }

describe('what was done', () => {
  it.each([
    ['', true],
    ['train.csv', true],
    ['ANN calm', true],
    ['10.0.0.7 read', true],
    ['  ', true],
    ['bob', false],
    ['calm bob', false],
  ])('has every word of "%s": %s', (text, want) => expect(matches(act, { ...any, text })).toBe(want))
  it("is somebody's, and went well or not", () => {
    expect(matches(act, { ...any, person: 'bob' })).toBe(false)
    expect(matches(act, { ...any, failed: true })).toBe(false)
    expect(
      matches(
        { ...act, entry: { ...act.entry, outcome: 'agent_call_forbidden' } },
        { ...any, person: 'ann', failed: true },
      ),
    ).toBe(true)
    expect(peopleOf([act.entry, { ...act.entry, owner: 'Abe' }, { ...act.entry, owner: '' }, act.entry])).toEqual([
      'Abe',
      'ann',
    ])
  })
  it('is a security event or not, and was done so often', () => {
    expect(matches(act, { ...any, security: true })).toBe(false)
    expect(matches({ ...act, entry: { ...act.entry, security: true } }, { ...any, security: true })).toBe(true)
    expect([times(act.entry), times({ ...act.entry, count: 80_000 })]).toEqual(['', ' ×80000'])
  })
})

describe('where somebody called from', () => {
  it.each([
    ['10.0.0.7:41234', '10.0.0.7'],
    ['[fe80::1]:443', '[fe80::1]'],
    ['this machine', 'this machine'],
    [undefined, ''],
  ])('%s: %s', (from, want) => expect(hostOf(from)).toBe(want))
})
