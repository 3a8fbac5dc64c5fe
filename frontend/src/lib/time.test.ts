import { describe, expect, it } from 'vitest'
import { dayWords, formatElapsed, formatRelative, formatShortRelative, formatSpan, past, setTimeLanguage } from './time'

describe('formatElapsed', () => {
  it.each([
    [-5, '0s'],
    [7_000, '7s'],
    [760_000, '12m 40s'],
    [1_440_000, '24m 00s'],
    [11_045_000, '3h 04m'],
    [86_400_000, '1d 0h'],
    [2 * 86_400_000 + 11_045_000, '2d 3h'],
  ])('%d ms is %s', (ms, text) => expect(formatElapsed(ms)).toBe(text))
})

describe('formatSpan', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [4_500, '4.5 s'],
    [6_000, '6 s'],
    [59_700, '1 min'],
    [185_000, '3 min 5 s'],
    [7_800_000, '2 h 10 min'],
    [7_200_000, '2 h'],
  ])('%d ms is %s', (ms, text) => expect(formatSpan(ms)).toBe(text))
})

describe('formatRelative', () => {
  it('speaks the chosen language', () => {
    const now = Date.parse('2026-01-01T01:00:00Z')
    expect(formatRelative('2026-01-01T00:00:00Z', now)).toBe('an hour ago')
    setTimeLanguage('ko')
    expect(formatRelative('2026-01-01T00:00:00Z', now)).toBe('한 시간 전')
    setTimeLanguage('en')
  })
})

describe('short relative times', () => {
  it('are figures in the largest unit', () => {
    const now = Date.parse('2026-01-02T03:04:05Z')
    const ago = (seconds: number) => formatShortRelative(now - seconds * 1000, now)
    expect([ago(0), ago(12), ago(190), ago(7300), ago(200_000), ago(-90)]).toEqual([
      'now',
      '12s ago',
      '3m ago',
      '2h ago',
      '2d ago',
      'in 1m',
    ])
  })
})

describe('dayWords', () => {
  it('names today and yesterday', () => {
    const now = new Date(2026, 2, 1, 0, 30).getTime()
    const hour = 3_600_000
    expect([now, now - hour, now - 30 * hour].map((at) => dayWords(at, now))).toEqual([
      '2026-03-01 today',
      '2026-02-28 yesterday',
      '2026-02-27',
    ])
  })
})

describe('past', () => {
  it.each([
    [900, 1000, 900],
    [1000, 1000, 1000],
    [4000, 1000, 1000],
  ])('what was at %d is at %3$d when it is %2$d', (at, now, is) => expect(past(at, now)).toBe(is))
})
