import { expect, it } from 'vitest'
import { spread } from './FillTable'

const widths =
  (...columns: { width: number; grow?: number }[]) =>
  (spare: number) =>
    spread(columns, spare).map((column) => column.width)

it('gives what is left over to the columns that grow, each its part', () => {
  expect(widths({ width: 100, grow: 3 }, { width: 50 }, { width: 80, grow: 1 })(200)).toEqual([250, 50, 130])
})

it('leaves every column its least where nothing is left over, and where none grows', () => {
  expect(widths({ width: 100, grow: 3 }, { width: 50 })(-40)).toEqual([100, 50])
  expect(widths({ width: 100 }, { width: 50 })(200)).toEqual([100, 50])
})
