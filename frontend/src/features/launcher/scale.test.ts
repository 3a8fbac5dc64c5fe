import { describe, expect, it } from 'vitest'
import { positionOf, powersOf, remainingMarks, stopsOf, valueAt } from './scale'

const blank = '\u200b'
const marks = (min: number, max: number, free: number) => remainingMarks(min, max, free, String, 'free')

describe('the stops of a slider', () => {
  it('double with one between, from end to end', () => {
    expect(stopsOf(1, 64)).toEqual([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
    expect(stopsOf(1, 10)).toEqual([1, 2, 3, 4, 6, 8, 10])
    expect(stopsOf(64, 1000)).toEqual([64, 96, 128, 192, 256, 384, 512, 768, 1000])
    expect(stopsOf(3, 4)).toEqual([3, 4])
  })
  it('have a place for each value, and a value for each place', () => {
    const stops = stopsOf(1, 64)
    for (const value of [1, 2, 5, 7, 23, 64]) expect(valueAt(stops, positionOf(stops, value))).toBe(value)
    expect([positionOf(stops, 0), positionOf(stops, 99), positionOf(stops, 5)]).toEqual([0, 11, 3.5])
  })
  it('name the usual amounts, as many as fit', () => {
    expect(powersOf(1, 20)).toEqual([1, 2, 4, 8, 16])
    expect(powersOf(1024, 1_000_000)).toEqual([1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144])
    expect(powersOf(3, 7)).toEqual([4])
  })
})

describe('the marks of a slider', () => {
  it('name its ends and what remains', () => {
    expect(marks(1, 16, 8)).toEqual({ 1: '1', 8: 'free 8', 16: '16' })
  })
  it('keep the dot of an end whose label would be written over', () => {
    expect(marks(1, 16, 2)).toEqual({ 1: blank, 2: 'free 2', 16: '16' })
    expect(marks(1, 16, 15)).toEqual({ 1: '1', 15: blank, 16: 'free 15 / 16' })
  })
  it('say no more where all or nothing remains', () => {
    expect(marks(1, 16, 16)).toEqual({ 1: '1', 16: '16' })
    expect(marks(1, 16, 0)).toEqual({ 1: '1', 16: '16' })
  })
})
