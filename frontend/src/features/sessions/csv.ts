import type { Session } from '@/api/types.gen'
import { parseBytes } from '@/lib/bytes'
import { kernelsOf } from './amounts'

const fields: [string, (s: Session) => string | number | null | undefined][] = [
  ['id', (s) => s.id],
  ['name', (s) => s.name],
  ['type', (s) => s.type],
  ['status', (s) => s.status],
  ['result', (s) => s.result],
  ['reason', (s) => s.reason],
  ['exit_code', (s) => s.exitCode],
  ['image', (s) => s.image],
  ['agent', (s) => s.agent],
  ['owner', (s) => s.owner],
  ['cpus', (s) => (s.spec.resources.cpu ?? 1) * kernelsOf(s)],
  ['memory_bytes', (s) => (parseBytes(s.spec.resources.memory) ?? 0) * kernelsOf(s)],
  ['accelerator', (s) => s.accelerator?.text],
  ['gpu_share', (s) => s.gpus.reduce((sum, g) => sum + g.share, 0) / 1000],
  ['priority', (s) => s.priority],
  ['label', (s) => s.spec.label],
  ['tags', (s) => s.tags.join(' ')],
  ['cluster', (s) => kernelsOf(s)],
  ['depends_on', (s) => s.dependsOn.join(' ')],
  ['created', (s) => s.createdAt],
  ['started', (s) => s.startedAt],
  ['ended', (s) => s.terminatedAt],
]

/** Quotes a cell where its text would end it, and disarms what a spreadsheet would run as a formula. */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Writes sessions as CSV (RFC 4180), one line each under a line of names. */
export function toCsv(sessions: Session[]): string {
  const lines = [fields.map(([name]) => name).join(',')]
  for (const session of sessions) lines.push(fields.map(([, read]) => cell(read(session))).join(','))
  return `${lines.join('\r\n')}\r\n`
}
