import { describe, expect, it } from 'vitest'
import { expandPorts, portFault, splitPorts, tokenOfPort } from './ports'

describe('ports', () => {
  it('are split at commas, spaces and line ends', () => {
    expect(splitPorts(' 8080, 9000:9002\n6006  7000,')).toEqual(['8080', '9000:9002', '6006', '7000'])
  })

  it('stand for themselves, or for every port of a range', () => {
    expect(expandPorts(['8080', '9000:9002', 'x', '1'])).toEqual([8080, 9000, 9001, 9002, 1])
  })

  it('of a long range are as many as it takes to be too many', () => {
    expect(expandPorts(['1:99999'])).toHaveLength(11)
  })

  it.each([
    ['9010:9000', 'portOrder'],
    ['abc', 'portFormat'],
    ['80.5', 'portFormat'],
    ['-8080', 'portFormat'],
    ['8080:', 'portFormat'],
    ['80', null],
    ['65530:65540', null],
  ])('that are written %s: %s', (token, fault) => {
    expect(portFault(token)).toBe(fault)
  })

  it('lead back to what was typed', () => {
    expect([0, 1, 2, 3, 4].map((i) => tokenOfPort(['8080', '9000:9001', '7000'], i))).toEqual([0, 1, 1, 2, -1])
  })
})
