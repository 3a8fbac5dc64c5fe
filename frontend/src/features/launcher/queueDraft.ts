import { DEFAULT_PRIORITY, MAX_AFTER, MAX_SLURM_OPTIONS } from '../../api/rules.gen'
import type { IdlePolicy, Slurm, Spec, UsePolicy } from '../../api/types.gen'
import { askedOf } from './slurm'

export type TimeoutUnit = 's' | 'm' | 'h' | 'd' | 'w'
export const TIMEOUT_UNITS: readonly TimeoutUnit[] = ['s', 'm', 'h', 'd', 'w']

/** A length of time as it is entered. */
export interface Span {
  value: number | null
  unit: TimeoutUnit
}

/** The check of use as it is entered; a threshold that is null does not count. */
export interface UseDraft {
  window: Span
  grace: Span | null
  any: boolean
  cpu: number | null
  memory: number | null
  gpu: number | null
  vram: number | null
}

export interface IdleDraft {
  lifetime: Span | null
  network: Span | null
  use: UseDraft | null
  /** What is reclaimed is kept, to be continued. */
  park: boolean
}

/** How a session waits, how many there are of it, and when it is reclaimed. */
export interface QueueDraft {
  priority: number | null
  /** Ids of sessions that must end in success first. */
  after: string[]
  /** null: it waits for ever. */
  pendingTimeout: Span | null
  label: string
  /** Kernels of each session. */
  cluster: number | null
  /** Sessions at once. */
  count: number | null
  /** null: as its machine does. */
  idle: IdleDraft | null
  /** How many images of its ends are kept under its name; null: none is made. */
  commitOnEnd: { keep: number | null } | null
  /** How long the home is kept unused after the end; no span: it is not. null: as the settings say. */
  keepHome: { span: Span | null } | null
  /** What is asked of Slurm besides; null: nothing. */
  slurm: Slurm | null
}

export const START_COMMITS = 3

export const EMPTY_QUEUE: QueueDraft = {
  priority: DEFAULT_PRIORITY,
  after: [],
  pendingTimeout: null,
  label: '',
  cluster: 1,
  count: 1,
  idle: null,
  commitOnEnd: null,
  keepHome: null,
  slurm: null,
}

export const START_IDLE: IdleDraft = { lifetime: null, network: { value: 1, unit: 'h' }, use: null, park: false }
export const START_USE: UseDraft = {
  window: { value: 30, unit: 'm' },
  grace: { value: 10, unit: 'm' },
  any: false,
  cpu: 5,
  memory: null,
  gpu: 5,
  vram: null,
}

export const METRICS = ['cpu', 'memory', 'gpu', 'vram'] as const

/** Writes a length as "90m"; "" while no number is entered. */
export function writeSpan(span: Span | null): string {
  return span?.value === null || span === null ? '' : `${span.value}${span.unit}`
}

/** Reads what writeSpan writes, also a unit alone; null when it is anything else. */
export function parseSpan(text: string | undefined): Span | null {
  const match = /^(\d*)([smhdw])$/.exec(text ?? '')
  return match ? { value: match[1] ? Number(match[1]) : null, unit: match[2] as TimeoutUnit } : null
}

function toUse(use: UseDraft): UsePolicy {
  const policy: UsePolicy = { window: writeSpan(use.window) }
  if (use.grace) policy.grace = writeSpan(use.grace)
  if (use.any) policy.any = true
  for (const name of METRICS) if (use[name] !== null) policy[name] = use[name]
  return policy
}

/** Puts into a spec what differs from the usual. */
export function addQueue(spec: Spec, draft: QueueDraft): void {
  if (draft.priority !== null && draft.priority !== DEFAULT_PRIORITY) spec.priority = draft.priority
  if (draft.after.length > 0) spec.after = draft.after
  if (draft.pendingTimeout) spec.pendingTimeout = writeSpan(draft.pendingTimeout)
  if (draft.label.trim() !== '') spec.label = draft.label.trim()
  if (draft.cluster !== null && draft.cluster > 1) spec.cluster = draft.cluster
  if (draft.commitOnEnd?.keep) spec.commitOnEnd = draft.commitOnEnd.keep
  if (draft.keepHome) spec.keepHome = writeSpan(draft.keepHome.span)
  const slurm = draft.slurm && askedOf(draft.slurm)
  if (slurm) spec.slurm = slurm
  if (draft.idle) {
    const idle: IdlePolicy = {}
    if (draft.idle.lifetime) idle.lifetime = writeSpan(draft.idle.lifetime)
    if (draft.idle.network && spec.type !== 'batch') idle.network = writeSpan(draft.idle.network)
    if (draft.idle.use) idle.use = toUse(draft.idle.use)
    if (draft.idle.park && spec.type !== 'batch') idle.park = true
    spec.idle = idle
  }
}

/** The same read from a spec. */
export function queueFromSpec(spec: Spec): QueueDraft {
  const { idle } = spec
  const use = idle?.use
  return {
    priority: spec.priority ?? DEFAULT_PRIORITY,
    after: spec.after ?? [],
    pendingTimeout: parseSpan(spec.pendingTimeout),
    label: spec.label ?? '',
    cluster: spec.cluster || 1,
    count: 1,
    commitOnEnd: spec.commitOnEnd ? { keep: spec.commitOnEnd } : null,
    keepHome: spec.keepHome === undefined ? null : { span: parseSpan(spec.keepHome) },
    slurm: spec.slurm ?? null,
    idle: idle
      ? {
          lifetime: parseSpan(idle.lifetime),
          network: parseSpan(idle.network),
          use: use
            ? {
                window: parseSpan(use.window) ?? START_USE.window,
                grace: parseSpan(use.grace),
                any: use.any ?? false,
                cpu: use.cpu ?? null,
                memory: use.memory ?? null,
                gpu: use.gpu ?? null,
                vram: use.vram ?? null,
              }
            : null,
          park: idle.park ?? false,
        }
      : null,
  }
}

const num = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null)
const str = (value: unknown): string => (typeof value === 'string' ? value : '')

const SLURM_TEXTS = ['partition', 'account', 'qos', 'gpuType', 'constraint', 'reservation', 'time'] as const

function decodeSlurm(from: Record<string, unknown>): Slurm | null {
  const slurm: Slurm = {}
  for (const name of SLURM_TEXTS) if (str(from[name])) slurm[name] = str(from[name])
  const options = Array.isArray(from.options) ? from.options.map(str).filter(Boolean).slice(0, MAX_SLURM_OPTIONS) : []
  if (options.length > 0) slurm.options = options
  return Object.keys(slurm).length > 0 ? slurm : null
}

/** Reads from the address what JSON wrote there; what does not fit is as usual. */
export function decodeQueue(from: Record<string, unknown>): QueueDraft {
  const span = (value: unknown) => {
    const { value: n, unit } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
    const known = TIMEOUT_UNITS.find((u) => u === unit)
    return known ? { value: num(n), unit: known } : null
  }
  const object = (value: unknown) =>
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  const idle = object(from.idle)
  const use = object(idle?.use)
  const commits = object(from.commitOnEnd)
  const home = object(from.keepHome)
  return {
    priority: from.priority === undefined ? DEFAULT_PRIORITY : num(from.priority),
    after: Array.isArray(from.after) ? from.after.map(str).filter(Boolean).slice(0, MAX_AFTER) : [],
    pendingTimeout: span(from.pendingTimeout),
    label: str(from.label),
    cluster: from.cluster === undefined ? 1 : num(from.cluster),
    count: from.count === undefined ? 1 : num(from.count),
    commitOnEnd: commits ? { keep: num(commits.keep) } : null,
    keepHome: home ? { span: span(home.span) } : null,
    slurm: decodeSlurm(object(from.slurm) ?? {}),
    idle: idle
      ? {
          lifetime: span(idle.lifetime),
          network: span(idle.network),
          use: use
            ? {
                window: span(use.window) ?? START_USE.window,
                grace: span(use.grace),
                any: use.any === true,
                cpu: num(use.cpu),
                memory: num(use.memory),
                gpu: num(use.gpu),
                vram: num(use.vram),
              }
            : null,
          park: idle.park === true,
        }
      : null,
  }
}
