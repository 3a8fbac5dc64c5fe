import { describe, expect, it } from 'vitest'
import { expandPorts, portFaults, splitPorts, tokenOfPort } from './ports'

describe('ports', () => {
  it('are split at commas, spaces and line ends', () => {
    expect(splitPorts(' 8080, 9000:9002\n6006  7000,')).toEqual(['8080', '9000:9002', '6006', '7000'])
  })

  it('stand for themselves, or for every port of a range', () => {
    expect(expandPorts(['8080', '9000:9002', 'x', '1'])).toEqual([8080, 9000, 9001, 9002])
  })

  it.each([
    ['80', 'range'],
    ['1023', 'range'],
    ['65536', 'range'],
    ['65530:65540', 'range'],
    ['9010:9000', 'order'],
    ['abc', 'format'],
    ['80.5', 'format'],
    ['-8080', 'format'],
    ['8080:', 'format'],
    ['2000:9999', 'count'],
  ])('refuse %s for its %s', (token, fault) => {
    expect(portFaults([token]).get(0)).toBe(fault)
  })

  it('take the first and last port there is', () => {
    expect(portFaults(['1024', '65535'])).toEqual(new Map())
  })

  it('are named twice only once, also inside a range', () => {
    expect(portFaults(['8080', '8079:8081', '8080'])).toEqual(
      new Map([
        [1, 'duplicate'],
        [2, 'duplicate'],
      ]),
    )
  })

  it('are ten at most, counted one by one', () => {
    expect(portFaults(['9000:9009'])).toEqual(new Map())
    expect(portFaults(['9000:9009', '8080'])).toEqual(new Map([[1, 'count']]))
    expect(portFaults(['9000:9010'])).toEqual(new Map([[0, 'count']]))
  })

  it('lead back to what was typed', () => {
    expect([0, 1, 2, 3, 4].map((i) => tokenOfPort(['8080', '9000:9001', '7000'], i))).toEqual([0, 1, 1, 2, -1])
  })
})
