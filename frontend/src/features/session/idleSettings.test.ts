import { describe, expect, it } from 'vitest'
import { metricsOf, settingsOf, toPolicy } from './idleSettings'

const SPEC = { image: 'a', resources: {} }

describe('settings of an idle trial', () => {
  it('begin with the policy of the session and mean it again', () => {
    const idle = { lifetime: '2d', network: '4h', use: { window: '1h', grace: '5m', any: true, cpu: 3, vram: 0 } }
    expect(toPolicy(settingsOf({ ...SPEC, accelerator: { shares: 500 }, idle }))).toEqual(idle)
  })
  it('begin with the usual one where there is none, without what cannot be judged', () => {
    expect(toPolicy(settingsOf(SPEC))).toEqual({ network: '1h', use: { window: '30m', grace: '10m', cpu: 5 } })
    expect(toPolicy(settingsOf({ ...SPEC, type: 'batch', accelerator: { devices: 1 } }))).toEqual({
      use: { window: '30m', grace: '10m', cpu: 5, gpu: 5 },
    })
    expect(metricsOf(SPEC)).toEqual(['cpu', 'memory'])
  })
  it('leave out what was emptied', () => {
    const none = { ...settingsOf(SPEC), network: ' ', cpu: null }
    expect(toPolicy(none)).toEqual({})
    expect(toPolicy({ ...none, lifetime: ' 1d ', cpu: 1, window: '' })).toEqual({
      lifetime: '1d',
      use: { window: '30m', grace: '10m', cpu: 1 },
    })
  })
})
