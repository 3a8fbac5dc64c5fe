import {
  MAX_CLUSTER,
  MAX_COMMITS,
  MAX_LAUNCHES,
  MAX_PORT,
  MAX_PRIORITY,
  MAX_THREADS,
  SECRET_NAME,
} from '../../api/rules.gen'
import type { AcceleratorDraft } from './accelerator'
import { type Amount, amountToBytes } from './amount'
import type { Draft } from './draft'
import { error, type Issue, missing } from './issues'
import { portFault } from './ports'
import { parseSpan, type Span } from './queueDraft'

/**
 * What cannot be asked at all: what is missing, is no number, or is outside of what its field counts. A spec has no
 * form for it, or means its default by it. Everything else is judged by the preview of the server.
 */
export function validate(draft: Draft, now: number): Issue[] {
  return [
    ...(draft.type === 'batch' ? batchFaults(draft, now) : []),
    ...(draft.image.trim() === '' ? [missing('image', 'imageRequired')] : []),
    ...envFaults(draft.env),
    ...resourceFaults(draft),
    ...draft.mounts.flatMap(({ source, folder }, index) =>
      folder === undefined && source.trim() === '' ? missing(`mounts[${index}].source`, 'sourceRequired') : [],
    ),
    ...draft.ports.flatMap((port, index) => {
      const fault = portFault(port)
      return fault ? error(`ports[${index}]`, fault, { port, max: MAX_PORT }) : []
    }),
    ...spanFault('keepHome', draft.keepHome?.span ?? null),
    ...countFaults(draft),
    ...idleFaults(draft),
    ...acceleratorFaults(draft.accelerator),
  ]
}

const isWhole = (value: number | null, low: number, high: number) =>
  value !== null && Number.isInteger(value) && value >= low && value <= high

const isSpan = (span: Span) => isWhole(span.value, 1, Number.MAX_SAFE_INTEGER)

const isAmount = (amount: Amount) => (amountToBytes(amount) ?? 0) > 0

function spanFault(field: string, span: Span | null): Issue[] {
  if (!span || isSpan(span)) return []
  return [span.value === null ? missing(field, 'timeoutNumber') : error(field, 'timeoutNumber')]
}

function batchFaults(draft: Draft, now: number): Issue[] {
  const issues = spanFault('timeout', draft.timeout)
  if (draft.command.trim() === '') issues.push(missing('command', 'commandRequired'))
  if (draft.startAt !== null) {
    const at = Date.parse(draft.startAt)
    if (Number.isNaN(at)) issues.push(missing('notBefore', 'startRequired'))
    else if (at <= now) issues.push(error('notBefore', 'startPast'))
  }
  return issues
}

function envFaults(env: Draft['env']): Issue[] {
  return env.flatMap(({ name, value }, index) => [
    ...(name === '' ? [missing(`env[${index}].name`, 'envNameRequired')] : []),
    ...(value === '' && SECRET_NAME.test(name) ? [missing(`env[${index}].value`, 'envValue')] : []),
  ])
}

function resourceFaults({ cpu, memory, shm, threads }: Draft): Issue[] {
  const issues: Issue[] = []
  if (cpu === null) issues.push(error('resources.cpu', 'cpuRequired'))
  else if (!isWhole(cpu, 1, Number.MAX_SAFE_INTEGER)) issues.push(error('resources.cpu', 'cpuWhole'))
  if (!isAmount(memory)) issues.push(error('resources.memory', 'memoryRequired'))
  if (shm && !isAmount(shm)) issues.push(error('resources.shm', 'shmRequired'))
  if (threads !== 'auto' && !isWhole(threads, 1, MAX_THREADS))
    issues.push(error('threads', 'threads', { max: MAX_THREADS }))
  return issues
}

/** The numbers of the queue, which have bounds of their own. */
function countFaults(draft: Draft): Issue[] {
  const counts: (readonly [string, number | null, number, number])[] = [
    ['priority', draft.priority, 0, MAX_PRIORITY],
    ['cluster', draft.cluster, 1, MAX_CLUSTER],
    ['count', draft.count, 1, MAX_LAUNCHES],
    ...(draft.commitOnEnd ? ([['commitOnEnd', draft.commitOnEnd.keep, 1, MAX_COMMITS]] as const) : []),
  ]
  return counts.flatMap(([field, value, low, max]) => (isWhole(value, low, max) ? [] : error(field, field, { max })))
}

function idleFaults({ idle, pendingTimeout, slurm }: Draft): Issue[] {
  return [
    ...spanFault('pendingTimeout', pendingTimeout),
    ...spanFault('slurm.time', parseSpan(slurm?.time)),
    ...spanFault('idle.lifetime', idle?.lifetime ?? null),
    ...spanFault('idle.network', idle?.network ?? null),
    ...spanFault('idle.use.window', idle?.use?.window ?? null),
    ...spanFault('idle.use.grace', idle?.use?.grace ?? null),
  ]
}

function acceleratorFaults(a: AcceleratorDraft): Issue[] {
  const field = 'accelerator'
  const isCount = (value: number | null) => isWhole(value, 1, Number.MAX_SAFE_INTEGER)
  if (a.mode === 'shares' && !(a.shares !== null && a.shares > 0)) return [missing(field, 'gpuShare')]
  if (a.mode === 'devices' && a.devices !== null && !Number.isInteger(a.devices))
    return [error(field, 'gpuPart', { amount: a.devices })]
  if (a.mode === 'devices' && !isCount(a.devices)) return [missing(field, 'gpuWhole')]
  if (a.mode === 'mig' && a.profile === '') return [missing(field, 'migRequired')]
  if (a.mode === 'mig' && !isCount(a.instances))
    return [a.instances === null ? missing(field, 'gpuWhole') : error(field, 'gpuWhole')]
  return a.mode === 'memory' && !isAmount(a.memory) ? [missing(field, 'vramRequired')] : []
}
