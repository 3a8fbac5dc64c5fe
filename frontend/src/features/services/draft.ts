import type { EnvVar, Serving } from '@/api/types.gen'
import { type ModelSource, type Runtime, type RuntimeId, runtimes } from '@/api/runtimes.gen'
import type { RuleDraft } from './rules'
import { argvOf } from './runtimes'
import { parseSpan, type Span } from './span'
import { joinWords, splitWords } from './words'

const GIB = 1024 ** 3

export const gpuModes = ['none', 'devices', 'share', 'memory'] as const
export type GpuMode = (typeof gpuModes)[number]

/** A new service as it is entered. What is null is as its runtime has it. */
export interface Draft {
  name: string
  runtime: RuntimeId
  source: ModelSource
  folder: string
  /** In the folder. */
  path: string
  /** Under which the server downloads it. */
  model: string
  /** Names under which clients ask for it; empty: that of the service. */
  served: string
  image: string | null
  command: string | null
  port: number | null
  health: string | null
  delay: Span | null
  env: string
  /** Empty: this computer. */
  agent: string
  replicas: number | null
  cpu: number | null
  /** GiB. */
  memory: number | null
  gpu: GpuMode
  /** Devices, percent of one, or GiB on one. */
  amount: number | null
  /** What the form has no field for: the actions before the start, and the rest of the health check. */
  rest: Pick<Serving, 'preStart' | 'health'>
  sleeps: boolean
  sleep: Span
  maySleep: boolean
  rules: RuleDraft[]
  public: boolean
}

export const EMPTY: Draft = {
  name: '',
  runtime: 'llamacpp',
  source: 'folder',
  folder: '',
  path: '',
  model: '',
  served: '',
  image: null,
  command: null,
  port: null,
  health: null,
  delay: null,
  env: '',
  agent: '',
  replicas: 1,
  cpu: 2,
  memory: 4,
  gpu: 'none',
  amount: 1,
  rest: {},
  sleeps: false,
  sleep: { value: 30, unit: 'm' },
  maySleep: false,
  rules: [],
  public: false,
}

/** The draft with another runtime, which brings its own image, command, port and health check. */
export function withRuntime(draft: Draft, runtime: RuntimeId): Draft {
  const { sources } = runtimes[runtime]
  return {
    ...draft,
    runtime,
    // A folder that was chosen stays; else it is what is usual with the runtime.
    source: draft.folder && sources.includes(draft.source) ? draft.source : (sources[0] ?? 'folder'),
    image: null,
    command: null,
    port: null,
    health: null,
    delay: null,
    rest: {},
  }
}

/** What amounts a GPU request starts with, by its mode. */
export const firstAmount: Record<GpuMode, number> = { none: 1, devices: 1, share: 50, memory: 8 }

/** The part of a whole device that is requested; undefined: none, or the device is not known. */
export function shareOf({ gpu, amount }: Draft, deviceMemory: number): string | undefined {
  const part =
    gpu === 'share'
      ? (amount ?? 0) / 100
      : gpu === 'memory' && deviceMemory > 0
        ? ((amount ?? 0) * GIB) / deviceMemory
        : 0
  return part > 0 && part < 1 ? (Math.floor(part * 100) / 100).toFixed(2) : undefined
}

/** A draft with what its runtime has for everything that was not entered. */
export interface Filled {
  runtime: Runtime
  image: string
  port: number
  health: string
  delay: Span
  /** The command line as it is shown in the field. */
  command: string
  /** Empty: what the image starts by itself. Undefined: the command line has a quote that is not closed. */
  argv: string[] | undefined
  served: string[]
  mounts: boolean
}

export function fill(draft: Draft): Filled {
  const runtime = runtimes[draft.runtime]
  const port = draft.port ?? runtime.port
  const served = draft.served.split(/[\s,]+/).filter(Boolean)
  const mounts = draft.source === 'folder' && runtime.sources.includes('folder') && draft.folder !== ''
  const usual = argvOf(runtime, {
    source: draft.source,
    model: draft.source === 'folder' ? draft.path.trim() : draft.model.trim() || 'MODEL',
    served: served[0] ?? (draft.name || 'NAME'),
    port,
    gpu: draft.gpu !== 'none',
    part: draft.gpu === 'memory' || (draft.gpu === 'share' && (draft.amount ?? 0) % 100 !== 0),
  })
  const command = draft.command ?? joinWords(usual)
  return {
    runtime,
    image: draft.image ?? (draft.gpu === 'none' ? runtime.image : (runtime.gpuImage ?? runtime.image)),
    port,
    health: draft.health ?? runtime.health,
    delay: draft.delay ?? parseSpan(runtime.delay) ?? { value: null, unit: 'm' },
    command,
    argv: draft.command === null ? usual : splitWords(draft.command),
    served,
    mounts,
  }
}

/** Reads NAME=value, one a line. Undefined: a line is not of this form. */
export function parseEnv(text: string): EnvVar[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('#'))
  const pairs = lines.map((line) => /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line))
  if (pairs.includes(null)) return undefined
  return pairs.flatMap((pair) => (pair?.[1] ? [{ name: pair[1], value: pair[2] ?? '' }] : []))
}
