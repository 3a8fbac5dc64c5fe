import { describe, expect, it } from 'vitest'
import { formatBytes, formatRate, parseBytes, shortBytes } from './bytes'

const GiB = 1024 ** 3

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [4.5 * GiB, '4.5 GiB'],
    [42 * GiB, '42 GiB'],
    [100 * GiB, '100 GiB'],
    [GiB - 1, '1 GiB'],
    [20 * 1024, '20 KiB'],
    [-2048, '-2 KiB'],
  ])('%d is %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))
  it('writes rates', () => expect(formatRate(2048)).toBe('2 KiB/s'))
})

describe('parseBytes', () => {
  it.each([
    ['512m', 512 * 1024 ** 2],
    ['1.5g', 1.5 * GiB],
    ['64 MiB', 64 * 1024 ** 2],
    ['2GB', 2 * GiB],
    ['77', 77],
    [' 1 t ', 1024 * GiB],
    [99, 99],
    ['', undefined],
    ['1.5.2g', undefined],
    ['-1g', undefined],
    ['1x', undefined],
    [undefined, undefined],
  ])('%s is %s', (text, bytes) => expect(parseBytes(text)).toBe(bytes))
})

describe('shortBytes', () => {
  it('takes the largest unit that loses nothing', () => {
    expect(shortBytes(GiB)).toBe('1g')
    expect(shortBytes(1.5 * GiB)).toBe('1536m')
    expect(shortBytes(1000)).toBe('1000')
  })
})
