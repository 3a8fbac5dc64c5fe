import { describe, expect, it } from 'vitest'
import { remainingMarks } from './scale'

const blank = '\u200b'
const marks = (min: number, max: number, free: number) => remainingMarks(min, max, free, String, 'free')

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
