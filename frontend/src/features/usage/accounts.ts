import dayjs from 'dayjs'
import type { Account, UsageBy } from '@/api/types.gen'
import { splitUse, toHours, toKwh } from '@/lib/share'

/** What can be drawn: granted and busy hours of devices, granted hours of CPUs, energy. */
export const metrics = ['gpu', 'busy', 'cpu', 'energy'] as const
export type Metric = (typeof metrics)[number]

export const groupings = ['session', 'day', 'label', 'device', 'owner'] as const satisfies readonly UsageBy[]
export type Grouping = (typeof groupings)[number]

/** Counters of several accounts as one. They are sums, but for the peak. */
export interface Sums {
  cpuMs: number
  allocCpuMs: number
  allocGpuMs: number
  busyGpuMs: number
  /** Busy time within what was allocated: a session may use time of a device that others leave free. */
  withinGpuMs: number
  withinCpuMs: number
  vramMiBMs: number
  vramPeak: number
  energy: number
  energyDynamic: number
  coveredMs: number
  estimatedMs: number
  gapMs: number
}

export const noUse: Sums = {
  cpuMs: 0,
  allocCpuMs: 0,
  allocGpuMs: 0,
  busyGpuMs: 0,
  withinGpuMs: 0,
  withinCpuMs: 0,
  vramMiBMs: 0,
  vramPeak: 0,
  energy: 0,
  energyDynamic: 0,
  coveredMs: 0,
  estimatedMs: 0,
  gapMs: 0,
}

export function addUse(sum: Sums, row: Account): Sums {
  return {
    cpuMs: sum.cpuMs + row.cpuMs,
    allocCpuMs: sum.allocCpuMs + row.allocCpuMs,
    allocGpuMs: sum.allocGpuMs + row.allocGpuMs,
    busyGpuMs: sum.busyGpuMs + row.busyGpuMs,
    withinGpuMs: sum.withinGpuMs + splitUse(row.busyGpuMs, row.allocGpuMs).within,
    withinCpuMs: sum.withinCpuMs + splitUse(row.cpuMs, row.allocCpuMs).within,
    vramMiBMs: sum.vramMiBMs + row.vramMiBMs,
    vramPeak: Math.max(sum.vramPeak, row.vramPeak),
    energy: sum.energy + row.energyDynamic + row.energyIdle,
    energyDynamic: sum.energyDynamic + row.energyDynamic,
    coveredMs: sum.coveredMs + row.coveredMs,
    estimatedMs: sum.estimatedMs + row.estimatedMs,
    gapMs: sum.gapMs + row.gapMs,
  }
}

export const sumUp = (rows: readonly Account[]): Sums => rows.reduce(addUse, noUse)

/** A sum in the unit that its metric is shown in: hours, or kilowatt hours. */
export function amountOf(sums: Sums, metric: Metric): number {
  if (metric === 'energy') return toKwh(sums.energy)
  return toHours({ gpu: sums.allocGpuMs, busy: sums.busyGpuMs, cpu: sums.allocCpuMs }[metric])
}

/**
 * The part of device time that was measured, estimated and missed, each between 0 and 1; undefined where there was
 * none.
 */
export function honesty(sums: Sums): { measured: number; estimated: number; missed: number } | undefined {
  const all = sums.coveredMs + sums.estimatedMs + sums.gapMs
  if (all === 0) return undefined
  return { measured: sums.coveredMs / all, estimated: sums.estimatedMs / all, missed: sums.gapMs / all }
}

/** Accounts that belong together, over all days. */
export interface Group {
  key: string
  kind: Account['kind']
  /** Its name in the accounts; empty where they have none. */
  name: string
  /** The id, for sessions. */
  session: string | undefined
  label: string | undefined
  owner: string | undefined
  sums: Sums
  /** The same by day, as YYYY-MM-DD. */
  days: Map<string, Sums>
}

const dayOf = (start: string): string => dayjs(start).format('YYYY-MM-DD')

function nameOf(row: Account, by: Grouping): string {
  switch (by) {
    case 'session':
      return row.name || row.session || ''
    case 'day':
      return dayOf(row.start)
    case 'label':
      return row.label ?? ''
    case 'device':
      return row.deviceName || row.device || ''
    case 'owner':
      return row.owner ?? ''
  }
}

const kinds: Account['kind'][] = ['session', 'other', 'idle', 'unattributed']

/**
 * Joins the daily rows of a report into groups: the newest day first, else sessions before what is nobody's; devices
 * by their index, all others with the largest use of devices first.
 */
export function groupRows(rows: readonly Account[], by: Grouping): Group[] {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const name = nameOf(row, by)
    const key = `${row.kind} ${by === 'session' ? (row.session ?? '') : name}`
    const day = dayOf(row.start)
    const group = groups.get(key) ?? {
      key,
      kind: row.kind,
      name,
      session: row.session,
      label: row.label,
      owner: row.owner,
      sums: noUse,
      days: new Map<string, Sums>(),
    }
    group.sums = addUse(group.sums, row)
    group.days.set(day, addUse(group.days.get(day) ?? noUse, row))
    groups.set(key, group)
  }
  const sorted = [...groups.values()]
  const rank = (group: Group) => kinds.indexOf(group.kind)
  if (by === 'device')
    return sorted.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, undefined, { numeric: true }))
  if (by === 'day') return sorted.toSorted((a, b) => b.name.localeCompare(a.name) || rank(a) - rank(b))
  return sorted.toSorted(
    (a, b) =>
      rank(a) - rank(b) ||
      b.sums.allocGpuMs - a.sums.allocGpuMs ||
      b.sums.energy - a.sums.energy ||
      b.sums.allocCpuMs - a.sums.allocCpuMs ||
      a.key.localeCompare(b.key),
  )
}

/** Every day from the first to the last, as YYYY-MM-DD. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  for (let day = dayjs(from); !day.isAfter(dayjs(to), 'day') && days.length < 800; day = day.add(1, 'day'))
    days.push(day.format('YYYY-MM-DD'))
  return days
}

export interface Stack {
  key: string
  /** One of the groups drawn; absent: all the smaller ones. */
  group?: Group
  kind: Account['kind']
  values: number[]
}

/** How many groups of sessions are drawn by themselves. */
const drawn = 7

/**
 * The layers of the chart, one value a day: the largest groups of sessions, the
 * smaller ones as one, then other processes, idle devices and what could not
 * be attributed, each as one.
 */
export function stacks(groups: readonly Group[], days: readonly string[], metric: Metric, by: Grouping): Stack[] {
  const valuesOf = (members: readonly Group[]) =>
    days.map((day) => members.reduce((sum, group) => sum + amountOf(group.days.get(day) ?? noUse, metric), 0))
  const sessions = groups
    .filter((g) => g.kind === 'session')
    .toSorted((a, b) => amountOf(b.sums, metric) - amountOf(a.sums, metric))
  const alone = by === 'day' ? [] : sessions.slice(0, drawn)
  const rest = by === 'day' ? sessions : sessions.slice(drawn)
  const layers: Stack[] = alone.map((group) => ({ key: group.key, group, kind: 'session', values: valuesOf([group]) }))
  layers.push({ key: 'rest', kind: 'session', values: valuesOf(rest) })
  for (const kind of ['other', 'idle', 'unattributed'] as const)
    layers.push({ key: kind, kind, values: valuesOf(groups.filter((g) => g.kind === kind)) })
  return layers.filter((layer) => layer.values.some((v) => v > 0))
}
