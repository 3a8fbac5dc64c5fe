import { HIDDEN, LARGE_SHM, LARGE_SHM_FROM, SESSION_NAME, SMALL_SHM } from '../../api/rules.gen'
import type { Preset, SessionType, Spec } from '../../api/types.gen'
import { requestText } from '../../lib/accelerator'
import { type AcceleratorDraft, NO_ACCELERATOR, parseAccelerator, requestOf } from './accelerator'
import { type Amount, amountFromBytes, amountToBytes, GIB } from './amount'
import { placeOf } from './away'
import { expandPorts } from './ports'
import { addQueue, EMPTY_QUEUE, parseSpan, type QueueDraft, queueFromSpec, type TimeoutUnit } from './queueDraft'

/** The steps in their order. Any may be visited at any time. */
export const STEPS = ['type', 'environment', 'storage', 'network', 'confirm'] as const
export type Step = (typeof STEPS)[number]

export interface EnvRow {
  name: string
  value: string
}

export interface MountRow {
  /** Directory of the machine; empty where a folder is mounted. */
  source: string
  /** Name of a folder. */
  folder?: string
  /** A directory inside of the folder; empty or missing: all of it. */
  path?: string
  /** The machine of the folder, where it was chosen from a list. */
  agent?: string
  target: string
  readOnly: boolean
}

/** Everything that is entered in the launcher, as it is entered: right or wrong. */
export interface Draft extends QueueDraft {
  type: Exclude<SessionType, 'system' | 'inference'>
  name: string
  command: string
  /** RFC 3339 when a start time is wanted; empty when it is wanted and not chosen yet. */
  startAt: string | null
  /** The amount and unit of the time limit; null when none is wanted. */
  timeout: { value: number | null; unit: TimeoutUnit } | null
  image: string
  /** The image is written by hand rather than chosen from an environment. */
  manual: boolean
  /** A script that runs first in each container; empty: none. */
  setup: string
  env: EnvRow[]
  /** Names of stored secrets. */
  secrets: string[]
  agent: string
  /** The person for whom it is launched, by somebody who rules the machine; empty: oneself. */
  owner: string
  /** Resource group to choose a machine in; empty where one is named or any will do. */
  group: string
  cpu: number | null
  memory: Amount
  /** null: automatic. */
  shm: Amount | null
  /** "auto": as many as CPUs. */
  threads: 'auto' | number | null
  mounts: MountRow[]
  /** Ports and ranges as they were typed. */
  ports: string[]
  /** Nobody reaches it by ssh. */
  noSSH: boolean
  /** One is root in it, and it has no mounts. */
  admin: boolean
  /** Of each kernel. */
  accelerator: AcceleratorDraft
  /** Frameworks are not told of their share. */
  uncooperative: boolean
  mps: boolean
}

export const EMPTY_DRAFT: Draft = {
  type: 'interactive',
  name: '',
  command: '',
  startAt: null,
  timeout: null,
  image: '',
  manual: false,
  setup: '',
  env: [],
  secrets: [],
  agent: '',
  owner: '',
  group: '',
  cpu: 1,
  memory: { value: 2, unit: 'g' },
  shm: null,
  threads: 'auto',
  mounts: [],
  ports: [],
  noSSH: false,
  admin: false,
  accelerator: NO_ACCELERATOR,
  uncooperative: false,
  mps: false,
  ...EMPTY_QUEUE,
}

/** The spec that a draft asks for. Wrong entries are left out or sent as they are, for the server to judge. */
export function toSpec(draft: Draft): Spec {
  const spec: Spec = {
    type: draft.type,
    image: draft.image.trim(),
    resources: { cpu: draft.cpu ?? 0, memory: amountToBytes(draft.memory) ?? 0 },
  }
  if (draft.name !== '') spec.name = draft.name
  if (draft.type === 'batch') {
    spec.command = draft.command
    if (draft.startAt) spec.notBefore = draft.startAt
    if (draft.timeout?.value) spec.timeout = `${draft.timeout.value}${draft.timeout.unit}`
  }
  if (draft.shm) spec.resources.shm = amountToBytes(draft.shm) ?? 0
  if (draft.setup.trim() !== '') spec.setup = draft.setup
  if (draft.env.length > 0) spec.env = draft.env.map(({ name, value }) => ({ name, value }))
  if (draft.secrets.length > 0) spec.secrets = draft.secrets
  if (typeof draft.threads === 'number') spec.threads = draft.threads
  if (draft.mounts.length > 0) {
    spec.mounts = draft.mounts.map((mount) => ({
      ...(mount.folder === undefined
        ? { source: mount.source.trim() }
        : { folder: mount.folder, ...(mount.path?.trim() ? { path: mount.path.trim() } : {}) }),
      ...(mount.target.trim() === '' ? {} : { target: mount.target.trim() }),
      ...(mount.readOnly ? { readOnly: true } : {}),
    }))
  }
  const ports = expandPorts(draft.ports)
  if (ports.length > 0) spec.ports = ports
  if (draft.noSSH) spec.noSSH = true
  if (draft.admin) spec.admin = true
  const agent = placeOf(draft)
  if (agent !== '') spec.agent = agent
  if (draft.group !== '') spec.group = draft.group
  const accelerator = requestOf(draft.accelerator)
  if (accelerator) {
    spec.accelerator = accelerator
    if (draft.uncooperative) spec.uncooperative = true
    if (draft.mps && (draft.accelerator.mode === 'shares' || draft.accelerator.mode === 'memory')) spec.mps = true
  }
  addQueue(spec, draft)
  return spec
}

/**
 * The draft of a spec from the launch history, a recipe or a link. Nothing of it
 * is dropped: what has passed or cannot be had is found by whoever judges the
 * draft. The value of a secret, which is never kept, has to be entered again.
 */
export function fromSpec(spec: Spec): Draft {
  return {
    ...EMPTY_DRAFT,
    type: spec.type === 'batch' ? 'batch' : 'interactive',
    name: spec.name ?? '',
    command: spec.command ?? '',
    startAt: spec.notBefore ?? null,
    timeout: parseSpan(spec.timeout),
    image: spec.image,
    setup: spec.setup ?? '',
    env: (spec.env ?? []).map(({ name, value }) => ({ name, value: value === HIDDEN ? '' : value })),
    secrets: spec.secrets ?? [],
    agent: spec.agent ?? '',
    group: spec.group ?? '',
    cpu: spec.resources.cpu || EMPTY_DRAFT.cpu,
    memory: amountFromBytes(spec.resources.memory || GIB),
    shm: spec.resources.shm ? amountFromBytes(spec.resources.shm) : null,
    threads: spec.threads ? spec.threads : 'auto',
    mounts: (spec.mounts ?? []).map((m) => ({
      source: m.source ?? '',
      ...(m.folder ? { folder: m.folder, path: m.path ?? '' } : {}),
      target: m.target ?? '',
      readOnly: m.readOnly ?? false,
    })),
    ports: (spec.ports ?? []).map(String),
    noSSH: spec.noSSH ?? false,
    admin: spec.admin ?? false,
    accelerator: parseAccelerator(requestText(spec.accelerator)),
    uncooperative: spec.uncooperative ?? false,
    mps: spec.mps ?? false,
    ...queueFromSpec(spec),
  }
}

/** Fills in a preset's amounts. One that names no shared memory leaves it automatic. */
export function applyPreset(draft: Draft, preset: Preset): Draft {
  const { cpu, memory, shm } = preset.resources
  return {
    ...draft,
    cpu: cpu || EMPTY_DRAFT.cpu,
    memory: amountFromBytes(memory || GIB),
    shm: shm ? amountFromBytes(shm) : null,
    accelerator: parseAccelerator(requestText(preset.accelerator)),
  }
}

/** The preset whose amounts the draft has, whatever units they are written in; null is Custom. */
export function presetOf(draft: Draft, presets: readonly Preset[]): Preset | null {
  const memory = amountToBytes(draft.memory)
  const shm = draft.shm ? amountToBytes(draft.shm) : 0
  const accelerator = requestText(requestOf(draft.accelerator))
  const same = (p: Preset) =>
    requestText(p.accelerator) === accelerator &&
    (p.resources.cpu || 1) === draft.cpu &&
    (p.resources.memory || GIB) === memory &&
    (p.resources.shm ?? 0) === shm
  return presets.find(same) ?? null
}

/** What automatic shared memory comes to. */
export function automaticShm(memory: number): number {
  return memory >= LARGE_SHM_FROM ? LARGE_SHM : Math.min(SMALL_SHM, Math.floor(memory / 2))
}

/** The shared memory that a draft comes to, in bytes. */
export function shmOf(draft: Draft): number {
  return draft.shm ? (amountToBytes(draft.shm) ?? 0) : automaticShm(amountToBytes(draft.memory) ?? 0)
}

/** The name itself, or with a short ending where a live session bears it already. */
export function freeName(name: string, taken: ReadonlySet<string>, random: () => number = Math.random): string {
  let free = name
  while (free !== '' && taken.has(free)) {
    free = `${name.slice(0, SESSION_NAME.max - 5)}-${Math.floor(random() * 36 ** 4)
      .toString(36)
      .padStart(4, '0')}`
  }
  return free
}
