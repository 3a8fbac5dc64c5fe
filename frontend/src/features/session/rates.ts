import type { Usage } from '@/api/types.gen'

/** Columns of numbers over time, as charts want them. Rates are bytes a second. */
interface Columns {
  times: number[]
  cpu: (number | null)[]
  memory: (number | null)[]
  netRx: (number | null)[]
  netTx: (number | null)[]
  diskRead: (number | null)[]
  diskWrite: (number | null)[]
  /** One line for each device, by its UUID and that of its instance. */
  gpus: Map<string, { device: string; instance?: string; util: (number | null)[]; vram: (number | null)[] }>
}

/** The longest pause between samples that still counts as one line, in seconds. */
const longestGap = 30

/**
 * Turns samples into columns. Counters become rates between two samples; one
 * that went back, as after a restart of the container, gives no rate. A long
 * pause breaks the lines.
 */
export function toColumns(samples: Usage[], from: number): Columns {
  const columns: Columns = {
    times: [],
    cpu: [],
    memory: [],
    netRx: [],
    netTx: [],
    diskRead: [],
    diskWrite: [],
    gpus: new Map(),
  }
  let before: Usage | undefined
  for (const sample of samples) {
    const at = Date.parse(sample.at) / 1000
    const gap = before ? at - Date.parse(before.at) / 1000 : 0
    if (at >= from) {
      if (before && gap > longestGap) pushRow(columns, at - gap / 2, null, null, () => null)
      const last = before
      const rate = (read: (u: Usage) => number) => {
        if (!last || gap <= 0 || gap > longestGap) return null
        const grown = read(sample) - read(last)
        return grown >= 0 ? grown / gap : null
      }
      pushRow(columns, at, sample.cpu, sample.memory, rate)
      putDevices(columns, sample)
    }
    before = sample
  }
  return columns
}

/** Puts a sample's loads of devices into the newest row; a device that is not in it has none. */
function putDevices(columns: Columns, sample: Usage): void {
  const row = columns.times.length - 1
  for (const { device, instance, util, memory } of sample.gpus) {
    const key = `${device} ${instance ?? ''}`
    const empty = () => columns.times.map(() => null)
    const line = columns.gpus.get(key) ?? { device, ...(instance ? { instance } : {}), util: empty(), vram: empty() }
    line.util[row] = util ?? null
    line.vram[row] = memory ?? null
    columns.gpus.set(key, line)
  }
}

function pushRow(
  columns: Columns,
  at: number,
  cpu: number | null,
  memory: number | null,
  rate: (read: (u: Usage) => number) => number | null,
): void {
  columns.times.push(at)
  for (const line of columns.gpus.values()) {
    line.util.push(null)
    line.vram.push(null)
  }
  columns.cpu.push(cpu)
  columns.memory.push(memory)
  columns.netRx.push(rate((u) => u.netRx))
  columns.netTx.push(rate((u) => u.netTx))
  columns.diskRead.push(rate((u) => u.diskRead))
  columns.diskWrite.push(rate((u) => u.diskWrite))
}
