import { describe, expect, it } from 'vitest'
import { decodeFrame, encodeAck, encodeInput, encodeResize, FrameError } from './frames'

const message = (...parts: (number | string)[]) =>
  new Uint8Array(parts.flatMap((p) => (typeof p === 'string' ? [...new TextEncoder().encode(p)] : [p]))).buffer
const u64 = (n: number) => [0, 0, 0, 0, (n >>> 24) & 255, (n >>> 16) & 255, (n >>> 8) & 255, n & 255]

describe('decodeFrame', () => {
  it('reads every kind of frame', () => {
    expect(decodeFrame(message('H', ...u64(1), ...u64(70000), ...u64(3), ...u64(4), 0, 80, 1, 0))).toEqual({
      kind: 'hello',
      start: 1,
      end: 70000,
      offset: 3,
      accepted: 4,
      cols: 80,
      rows: 256,
    })
    expect(decodeFrame(message('D', ...u64(5), 'ab'))).toEqual({
      kind: 'data',
      offset: 5,
      bytes: new Uint8Array([97, 98]),
    })
    expect(decodeFrame(message('G', ...u64(5), ...u64(9)))).toEqual({ kind: 'gap', from: 5, to: 9 })
    expect(decodeFrame(message('M', 'x'))).toEqual({ kind: 'modes', bytes: new Uint8Array([120]) })
    expect(decodeFrame(message('K', ...u64(2 ** 31)))).toEqual({ kind: 'ack', accepted: 2 ** 31 })
    expect(decodeFrame(message('Z', 0, 100, 0, 30))).toEqual({ kind: 'size', cols: 100, rows: 30 })
    expect(decodeFrame(message('X', 255, 255, 255, 247))).toEqual({ kind: 'exit', code: -9 })
  })

  it('reads offsets beyond 32 bits', () => {
    expect(decodeFrame(message('K', 0, 0, 1, 0, 0, 0, 0, 5))).toEqual({ kind: 'ack', accepted: 2 ** 40 + 5 })
  })

  it.each([
    ['no bytes'],
    ['H', 'H'],
    ['D', 'D1234567'],
    ['G', 'G123456789'],
    ['K', 'K'],
    ['Z', 'Z12'],
    ['X', 'X1'],
    ['unknown', '?'],
  ])('refuses a broken frame: %s', (_, text = '') => {
    expect(() => decodeFrame(message(text))).toThrow(FrameError)
  })
})

describe('encode', () => {
  it('writes frames to the letter', () => {
    expect(new Uint8Array(encodeInput(258, new Uint8Array([9])))).toEqual(
      new Uint8Array([73, 0, 0, 0, 0, 0, 0, 1, 2, 9]),
    )
    expect(new Uint8Array(encodeAck(2 ** 40))).toEqual(new Uint8Array([65, 0, 0, 1, 0, 0, 0, 0, 0]))
    expect(new Uint8Array(encodeResize(300, 40))).toEqual(new Uint8Array([82, 1, 44, 0, 40]))
  })
})
