import type { UsageBook } from '@/api/book'
import type { Environment, Session } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { parseBytes } from '@/lib/bytes'
import { environmentTitle } from '@/api/environment'
import { kernelsOf } from './amounts'
import { deviceUse } from './deviceUse'

/** What is known of sessions besides themselves. */
interface Around {
  environments: readonly Environment[]
  usage: UsageBook
}

/** What a running session uses now; undefined of any other. */
const usageOf = (s: Session, around: Around) =>
  s.status === 'RUNNING' && !s.lastHeard ? around.usage[s.id] : undefined

const devicesOf = (s: Session, around: Around) => deviceUse(s, usageOf(s, around))

const fields: [string, (s: Session, around: Around) => string | number | null | undefined][] = [
  ['id', (s) => s.id],
  ['name', (s) => s.name],
  ['type', (s) => s.type],
  ['status', (s) => s.status],
  ['result', (s) => s.result],
  ['reason', (s) => s.reason],
  ['exit_code', (s) => s.exitCode],
  ['image', (s) => s.image],
  ['environment', (s, { environments }) => environmentTitle(environments, s.image)],
  ['agent', (s) => s.agent],
  ['owner', (s) => s.owner],
  ['cpus', (s) => (s.spec.resources.cpu ?? 1) * kernelsOf(s)],
  ['memory_bytes', (s) => (parseBytes(s.spec.resources.memory) ?? 0) * kernelsOf(s)],
  ['accelerator', (s) => requestText(s.spec.accelerator)],
  ['gpu_share', (s) => s.grants.gpus.reduce((sum, g) => sum + g.share, 0) / 1000],
  ['cpus_used', (s, around) => usageOf(s, around)?.cpu],
  ['memory_used_bytes', (s, around) => usageOf(s, around)?.memory],
  ['gpu_load', (s, around) => share(devicesOf(s, around).load)],
  ['vram_used_bytes', (s, around) => devicesOf(s, around).memory],
  ['priority', (s) => s.priority],
  ['label', (s) => s.spec.label],
  ['tags', (s) => s.tags.join(' ')],
  ['cluster', (s) => kernelsOf(s)],
  ['depends_on', (s) => s.dependsOn.join(' ')],
  ['created', (s) => s.createdAt],
  ['started', (s) => s.startedAt],
  ['ended', (s) => s.terminatedAt],
]

/** Hundredths of a percent of one device as a share of it. */
const share = (load: number | undefined) => (load === undefined ? undefined : load / 10_000)

/** Quotes a cell where its text would end it, and disarms what a spreadsheet would run as a formula. */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Writes sessions as CSV (RFC 4180), one line each under a line of names. */
export function toCsv(sessions: Session[], around: Around): string {
  const lines = [fields.map(([name]) => name).join(',')]
  for (const session of sessions) lines.push(fields.map(([, read]) => cell(read(session, around))).join(','))
  return `${lines.join('\r\n')}\r\n`
}
