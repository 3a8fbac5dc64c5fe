import { describe, expect, it } from 'vitest'
import { announcedEnd, firstEnd, hoursUntilTomorrow, idleOutlook, toneOfMetric, isUnjudged } from './idle'

const now = Date.parse('2026-01-01T00:00:00Z')
const at = (minutes: number) => new Date(now + minutes * 60_000).toISOString()
const check = (checker: string, minutes?: number, state = 'active') => ({
  checker,
  state,
  ...(minutes === undefined ? {} : { expiresAt: at(minutes) }),
})

describe('idleOutlook', () => {
  it('is about the check that ends the session first', () => {
    const outlook = idleOutlook([check('lifetime', 600), check('network', 90, 'idle')], undefined, now)
    expect(outlook).toMatchObject({ tone: 'warn', left: 90 * 60_000, check: { checker: 'network' } })
  })
  it.each([
    [59, 'bad'],
    [60, 'warn'],
    [239, 'warn'],
    [240, 'good'],
  ])('is at %i minutes %s', (minutes, tone) => {
    expect(idleOutlook([check('lifetime', minutes)], undefined, now).tone).toBe(tone)
  })
  it('takes what is unknown or not judged yet for no end', () => {
    expect(idleOutlook([check('network', 5, 'unknown'), check('utilization', 5, 'grace')], undefined, now)).toEqual({
      tone: 'none',
    })
    expect(firstEnd([check('utilization')])).toBeUndefined()
  })
  it('counts nothing down by activity while the session is in use', () => {
    expect(idleOutlook([check('network', 59, 'active'), check('lifetime', 600)], undefined, now)).toMatchObject({
      tone: 'good',
      check: { checker: 'lifetime' },
    })
    expect(idleOutlook([check('network', 59, 'active')], undefined, now)).toEqual({ tone: 'none' })
  })
  it('says that it is kept before all else, until that is over', () => {
    expect(idleOutlook([check('network', 5, 'idle')], at(60), now)).toMatchObject({ tone: 'kept', left: 3_600_000 })
    expect(idleOutlook([check('network', 5, 'idle')], at(-1), now).tone).toBe('bad')
  })
  it('never counts below nothing', () => {
    expect(idleOutlook([check('network', -5, 'idle')], undefined, now).left).toBe(0)
  })
})

describe('toneOfMetric', () => {
  it('is bad exactly below the threshold and good from twice of it on', () => {
    expect([4.9, 5, 9.9, 10].map((v) => toneOfMetric(v, 5))).toEqual(['bad', 'warn', 'warn', 'good'])
  })
})

describe('a session that no check has judged', () => {
  const at = '2026-01-02T03:04:05Z'
  const now = Date.parse(at) + 60_000
  it('waits for its own checks, or has just started', () => {
    expect(isUnjudged([], { network: '1h' }, at, now)).toBe(true)
    expect(isUnjudged([], undefined, at, Date.parse(at) + 5_000)).toBe(true)
  })
  it('is under no check otherwise', () => {
    expect(isUnjudged([], undefined, at, now)).toBe(false)
    expect(isUnjudged([], {}, at, now)).toBe(false)
    expect(isUnjudged([{ checker: 'network', state: 'active' }], { network: '1h' }, at, now)).toBe(false)
    expect(isUnjudged([], { network: '1h' }, undefined, now)).toBe(false)
  })
})

describe('announcedEnd', () => {
  const warned = { status: 'RUNNING', idle: [check('lifetime', 2), check('network', 1, 'idle')] }
  const by = (checker: string) => ({ code: `session_idle_${checker}` })
  it('is that of the check that warns, whatever others count down to', () => {
    expect(announcedEnd({ ...warned, warnings: [by('lifetime')] })).toEqual({
      checker: 'lifetime',
      at: now + 2 * 60_000,
    })
    expect(announcedEnd({ ...warned, warnings: [by('lifetime'), by('network')] })?.checker).toBe('network')
  })
  it.each([
    ['nothing warns', { ...warned, warnings: [{ code: 'session_run_device-lost' }] }],
    ['it ends already', { ...warned, status: 'TERMINATING', warnings: [by('lifetime')] }],
    ['its machine is away', { ...warned, warnings: [by('lifetime')], lastHeard: at(0) }],
  ])('is none while %s', (_, session) => expect(announcedEnd(session)).toBeUndefined())
})

describe('hoursUntilTomorrow', () => {
  it('goes on until 9 in the morning of the next day', () => {
    expect(hoursUntilTomorrow(new Date(2026, 0, 31, 23, 30).getTime())).toBe(9.5)
    expect(hoursUntilTomorrow(new Date(2026, 0, 31, 0, 10, 20).getTime())).toBeCloseTo(32 + 49 / 60 + 40 / 3600)
  })
})
