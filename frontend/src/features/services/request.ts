import { HIDDEN } from '@/api/rules.gen'
import type { Accelerator, DeployRequest, Mount, Service, Spec } from '@/api/types.gen'
import { type Draft, EMPTY, fill, parseEnv } from './draft'
import { MODEL_TARGET } from '@/api/runtimes.gen'
import { ruleDraftOf, ruleOf } from './rules'
import { parseSpan, writeSpan } from './span'
import { currentRevision } from './states'
import { joinWords } from './words'

const GIB = 1024 ** 3

/** The request for devices; undefined: none. */
function acceleratorOf({ gpu, amount }: Draft): Accelerator | undefined {
  if (gpu === 'none' || !amount) return undefined
  if (gpu === 'devices') return { devices: Math.round(amount) }
  if (gpu === 'memory') return { memory: Math.round(amount * 1024) * 1024 ** 2 }
  // A share that is whole means whole devices.
  return amount % 100 === 0 ? { devices: amount / 100 } : { shares: Math.round(amount * 10) }
}

/** The folder with the model, and what else is mounted already. */
function mountsOf(draft: Draft, before: readonly Mount[]): Mount[] {
  const { mounts, runtime } = fill(draft)
  const others = before.filter((mount) => mount.target !== MODEL_TARGET)
  if (!mounts) return others
  const same = before.find((mount) => mount.target === MODEL_TARGET && mount.folder === draft.folder)
  return [
    same ?? { folder: draft.folder, target: MODEL_TARGET, ...(runtime.writes ? {} : { readOnly: true }) },
    ...others,
  ]
}

/** What a form asks for besides its draft. */
interface Given {
  /** The service that has the name already. What the form has no field for stays as it is there. */
  existing?: Service | undefined
  /** What the form was filled in with; the rest of it stays. */
  base?: Spec | undefined
}

/** What is sent. */
export function requestFor(draft: Draft, { existing, base }: Given = {}): DeployRequest {
  const filled = fill(draft)
  const own = parseEnv(draft.env) ?? []
  const env = [
    ...(filled.mounts ? (filled.runtime.env ?? []) : []).filter(({ name }) => !own.some((v) => v.name === name)),
    ...own,
  ]
  // The form has no field for MIG instances.
  const accelerator = acceleratorOf(draft) ?? (base?.accelerator?.profile ? base.accelerator : undefined)
  const mounts = mountsOf(draft, base?.mounts ?? [])
  const sleep = draft.sleeps ? writeSpan(draft.sleep) : ''
  const delay = writeSpan(filled.delay)
  const rest: Spec = base ? { ...base } : { image: '', resources: {} }
  delete rest.env
  delete rest.accelerator
  delete rest.mounts
  return {
    name: draft.name,
    replicas: draft.replicas ?? 0,
    ...(sleep ? { sleep } : {}),
    ...(draft.public ? { public: true } : {}),
    ...(existing?.retry ? { retry: true } : {}),
    ...(draft.maySleep ? { maySleep: true } : {}),
    ...(draft.rules.length > 0 ? { rules: draft.rules.map(ruleOf) } : {}),
    spec: {
      ...rest,
      type: 'inference',
      image: filled.image.trim(),
      resources: {
        ...rest.resources,
        cpu: draft.cpu ?? 0,
        memory: Math.round((draft.memory ?? 0) * 1024) * 1024 ** 2,
      },
      ...(draft.agent ? { agent: draft.agent } : {}),
      ...(env.length > 0 ? { env } : {}),
      ...(accelerator ? { accelerator } : {}),
      ...(mounts.length > 0 ? { mounts } : {}),
      serving: {
        port: filled.port,
        ...(filled.argv && filled.argv.length > 0 ? { command: filled.argv } : {}),
        ...(filled.served.length > 0 ? { models: filled.served } : {}),
        ...(draft.rest.preStart ? { preStart: draft.rest.preStart } : {}),
        health: { ...draft.rest.health, path: filled.health.trim(), ...(delay ? { initialDelay: delay } : {}) },
      },
    },
  }
}

/** The way in which devices were asked for, and the amount. */
function gpuOf(a: Accelerator | undefined): Pick<Draft, 'gpu' | 'amount'> {
  if (a?.devices) return { gpu: 'devices', amount: a.devices }
  if (a?.shares) return { gpu: 'share', amount: a.shares / 10 }
  if (a?.memory) return { gpu: 'memory', amount: a.memory / GIB }
  return { gpu: 'none', amount: 1 }
}

/** What a service runs and wants now, to change it. Values that are hidden have to be entered again. */
export function draftOf(service: Service): Draft {
  const spec = currentRevision(service)?.spec
  const { serving } = spec ?? {}
  const health = serving?.health
  const sleep = parseSpan(service.sleep ?? '')
  return {
    ...EMPTY,
    name: service.name,
    runtime: 'custom',
    folder: spec?.mounts?.find((mount) => mount.target === MODEL_TARGET)?.folder ?? '',
    served: (serving?.models ?? []).join(', '),
    image: spec?.image ?? '',
    command: serving?.command ? joinWords(serving.command) : null,
    port: serving?.port ?? null,
    health: health?.path ?? '/health',
    delay: parseSpan(health?.initialDelay ?? '1m') ?? null,
    env: (spec?.env ?? []).map(({ name, value }) => `${name}=${value === HIDDEN ? '' : value}`).join('\n'),
    rest: { ...(serving?.preStart ? { preStart: serving.preStart } : {}), ...(health ? { health } : {}) },
    agent: service.agent,
    replicas: service.replicas,
    cpu: spec?.resources.cpu ?? null,
    memory: (spec?.resources.memory ?? 0) / GIB,
    ...gpuOf(spec?.accelerator),
    sleeps: sleep !== undefined,
    sleep: sleep ?? EMPTY.sleep,
    maySleep: service.maySleep ?? false,
    rules: (service.rules ?? []).map(ruleDraftOf),
    public: service.public ?? false,
  }
}
