import { MAX_ENV } from '../../api/rules.gen'
import { decodeAccelerator, encodeAccelerator } from './accelerator'
import { addressable } from './address'
import { parseAmount, writeAmount } from './amount'
import { type Draft, EMPTY_DRAFT, type EnvRow, type MountRow } from './draft'
import { decodeQueue, TIMEOUT_UNITS, type TimeoutUnit } from './queueDraft'

/**
 * Writes a draft as the text that the address of the view carries: JSON of what
 * may be there and differs from the empty draft. "" is the empty draft.
 */
export function encodeDraft(whole: Draft): string {
  const draft = addressable(whole)
  const flat: Record<string, unknown> = {
    ...draft,
    memory: writeAmount(draft.memory),
    shm: draft.shm ? writeAmount(draft.shm) : null,
    timeout: draft.timeout ? `${draft.timeout.value ?? ''}${draft.timeout.unit}` : null,
    env: draft.env.map((row) => [row.name]),
    mounts: draft.mounts.map((m) => [
      m.source,
      m.target,
      m.readOnly ? 1 : 0,
      ...(m.folder === undefined ? [] : [m.folder, m.path ?? '', ...(m.agent ? [m.agent] : [])]),
    ]),
    accelerator: encodeAccelerator(draft.accelerator),
  }
  const empty: Record<string, unknown> = { ...EMPTY_DRAFT, memory: writeAmount(EMPTY_DRAFT.memory), accelerator: '' }
  const changed = Object.entries(flat).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(empty[key]))
  return changed.length === 0 ? '' : JSON.stringify(Object.fromEntries(changed))
}

/** Reads what encodeDraft writes. An address can hold anything: what does not fit is left empty. */
export function decodeDraft(text: string | null): Draft {
  if (!text) return EMPTY_DRAFT
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return EMPTY_DRAFT
  }
  if (typeof raw !== 'object' || raw === null) return EMPTY_DRAFT
  const from = raw as Record<string, unknown>
  return {
    type: from.type === 'batch' ? 'batch' : 'interactive',
    name: str(from.name),
    command: str(from.command),
    startAt: typeof from.startAt === 'string' ? from.startAt : null,
    timeout: timeout(from.timeout),
    image: str(from.image),
    manual: from.manual === true,
    setup: str(from.setup),
    env: list(from.env).map(envRow),
    secrets: list(from.secrets).map(str).filter(Boolean),
    agent: str(from.agent),
    owner: str(from.owner),
    group: str(from.group),
    cpu: from.cpu === null ? null : num(from.cpu, EMPTY_DRAFT.cpu),
    memory: parseAmount(str(from.memory)) ?? EMPTY_DRAFT.memory,
    shm: parseAmount(str(from.shm)),
    threads: from.threads === null ? null : num(from.threads, 'auto'),
    mounts: list(from.mounts).map(mountRow),
    ports: list(from.ports).map(str),
    noSSH: from.noSSH === true,
    admin: from.admin === true,
    accelerator: decodeAccelerator(str(from.accelerator)),
    uncooperative: from.uncooperative === true,
    mps: from.mps === true,
    ...decodeQueue(from),
  }
}

const str = (value: unknown): string => (typeof value === 'string' ? value : '')
const num = <T>(value: unknown, otherwise: T): number | T =>
  typeof value === 'number' && Number.isFinite(value) ? value : otherwise
// No list of a spec may be longer than that of its variables.
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, MAX_ENV) : [])

function envRow(value: unknown): EnvRow {
  const [name, content] = list(value)
  return { name: str(name), value: str(content) }
}

function mountRow(value: unknown): MountRow {
  const [source, target, readOnly, folder, path, agent] = list(value)
  return {
    source: str(source),
    target: str(target),
    readOnly: readOnly === 1,
    ...(typeof folder === 'string' ? { folder, path: str(path), ...(str(agent) ? { agent: str(agent) } : {}) } : {}),
  }
}

function timeout(value: unknown): Draft['timeout'] {
  const match = /^(\d*)([a-z])$/.exec(str(value))
  const unit = match?.[2] as TimeoutUnit | undefined
  if (!unit || !TIMEOUT_UNITS.includes(unit)) return null
  return { value: match?.[1] ? Number(match[1]) : null, unit }
}
