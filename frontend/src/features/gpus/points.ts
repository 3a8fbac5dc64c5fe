import type { DevicePoint } from '@/api/types.gen'

/** Values of several devices over one time axis, in seconds since 1970; what a device did not tell is null. */
interface PointColumns {
  times: number[]
  util: (number | null)[][]
  memory: (number | null)[][]
  power: (number | null)[][]
  temperature: (number | null)[][]
}

/** Samples of one round come within this many seconds of each other. */
const together = 1

/** The longest pause that still counts as one line, in seconds: beyond the last hour there is one sample a minute. */
const longestGap = 150

/**
 * Lays the histories of devices over one another. Samples that were taken
 * together share a place on the axis; a long pause breaks every line.
 */
export function joinPoints(histories: readonly (readonly DevicePoint[])[], from: number): PointColumns {
  const all = histories
    .flatMap((points, device) => points.map((point) => ({ at: Date.parse(point.at) / 1000, device, point })))
    .filter((entry) => entry.at >= from)
    .toSorted((a, b) => a.at - b.at)
  const empty = () => histories.map((): (number | null)[] => [])
  const columns: PointColumns = { times: [], util: empty(), memory: empty(), power: empty(), temperature: empty() }
  const metrics = [columns.util, columns.memory, columns.power, columns.temperature]
  const addRow = (at: number) => {
    columns.times.push(at)
    for (const metric of metrics) for (const line of metric) line.push(null)
  }
  for (const { at, device, point } of all) {
    const last = columns.times.at(-1)
    if (last === undefined || at - last > together) {
      if (last !== undefined && at - last > longestGap) addRow((last + at) / 2)
      addRow(at)
    }
    const row = columns.times.length - 1
    const put = (lines: (number | null)[][], value: number | undefined) => {
      const line = lines[device]
      if (line && value !== undefined) line[row] = value
    }
    put(columns.util, point.util)
    put(columns.memory, point.memoryUsed)
    put(columns.power, point.power)
    put(columns.temperature, point.temperature)
  }
  return columns
}
