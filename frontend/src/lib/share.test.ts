import { describe, expect, it } from 'vitest'
import { digits, formatEnergy, formatLoad, formatShare, formatWatts, toHours, toKwh } from './share'

describe('units of devices', () => {
  it('writes shares as numbers of devices', () => {
    expect([0, 100, 500, 125, 1000, 2500].map(formatShare)).toEqual(['0', '0.1', '0.5', '0.125', '1', '2.5'])
  })
  it('writes load with a digit only where it tells something', () => {
    expect([0, 42, 420, 8_700, 10_000].map(formatLoad)).toEqual(['0 %', '0.4 %', '4.2 %', '87 %', '100 %'])
  })
  it('writes power and energy in the unit that reads well', () => {
    expect([formatWatts(6_500), formatWatts(312_400)]).toEqual(['6.5 W', '312 W'])
    expect([formatEnergy(0), formatEnergy(3_600_000), formatEnergy(4.5e9)]).toEqual(['0 Wh', '1 Wh', '1.25 kWh'])
  })
  it('never writes a little as nothing', () => {
    expect([
      digits(0),
      digits(0.0004),
      digits(0.0042),
      digits(0.08),
      digits(0.123),
      digits(12.34),
      digits(1240),
    ]).toEqual(['0', '<0.001', '0.004', '0.08', '0.12', '12.3', '1,240'])
  })
  it('turns counters into hours', () => {
    expect([toHours(5_400_000), toKwh(3.6e9)]).toEqual([1.5, 1])
  })
})
