import type { DeviceBoard } from '../../api/types.gen'
import { type AcceleratorDraft, offerOf } from './accelerator'
import { amountToBytes } from './amount'
import type { Issue } from './issues'
import { MAX_CLUSTER, MAX_COMMITS, MAX_COUNT, MAX_LABEL, METRICS, type QueueDraft, type Span } from './queueDraft'

const error = (field: string, key: string, values?: Issue['values']): Issue => ({
  field,
  severity: 'error',
  key,
  values,
})
const warning = (field: string, key: string, values?: Issue['values']): Issue => ({
  field,
  severity: 'warning',
  key,
  values,
})

const whole = (value: number | null, low: number, high: number) =>
  value !== null && Number.isInteger(value) && value >= low && value <= high

/** What is wrong with how a session waits, how many there are, and when it is reclaimed. */
export function validateQueue(draft: QueueDraft, liveIds: ReadonlySet<string> | null): Issue[] {
  const issues: Issue[] = []
  if (!whole(draft.priority, 0, 100)) issues.push(error('priority', 'priority'))
  if (!whole(draft.cluster, 1, MAX_CLUSTER)) issues.push(error('cluster', 'cluster', { max: MAX_CLUSTER }))
  if (!whole(draft.count, 1, MAX_COUNT)) issues.push(error('count', 'count', { max: MAX_COUNT }))
  draft.after.forEach((id, index) => {
    if (liveIds && !liveIds.has(id)) issues.push(error(`after[${index}]`, 'afterGone', { id }))
  })
  if (draft.pendingTimeout && !wholeSpan(draft.pendingTimeout)) issues.push(error('pendingTimeout', 'timeoutNumber'))
  if ([...draft.label.trim()].length > MAX_LABEL) issues.push(error('label', 'labelLong', { max: MAX_LABEL }))
  if (draft.commitOnEnd && !whole(draft.commitOnEnd.keep, 1, MAX_COMMITS))
    issues.push(error('commitOnEnd', 'commitOnEnd', { max: MAX_COMMITS }))
  return [...issues, ...validateIdle(draft)]
}

function wholeSpan(span: Span): boolean {
  return whole(span.value, 1, Number.MAX_SAFE_INTEGER)
}

/** An idle check looks no closer than this. */
const tooShort = (span: Span) => span.unit === 's' && (span.value ?? 0) < 60

function validateIdle({ idle }: QueueDraft): Issue[] {
  if (!idle) return []
  const issues: Issue[] = []
  const check = (field: string, span: Span | null) => {
    if (!span) return
    if (!wholeSpan(span)) issues.push(error(field, 'timeoutNumber'))
    else if (tooShort(span)) issues.push(error(field, 'idleShort'))
  }
  check('idle.lifetime', idle.lifetime)
  check('idle.network', idle.network)
  const { use } = idle
  if (!use) return issues
  check('idle.use.window', use.window)
  if (use.grace && !wholeSpan(use.grace)) issues.push(error('idle.use.grace', 'timeoutNumber'))
  if (METRICS.every((name) => use[name] === null)) issues.push(error('idle.use', 'idleThreshold'))
  for (const name of METRICS) {
    const value = use[name]
    if (value !== null && !(value > 0 && value <= 100)) issues.push(error(`idle.use.${name}`, 'idlePercent'))
  }
  return issues
}

const field = 'accelerator'

/** What is wrong with a request for devices, or makes it wait, as far as the boards tell. */
export function validateAccelerator(a: AcceleratorDraft, boards: readonly DeviceBoard[], agent: string): Issue[] {
  if (a.mode === 'none') return []
  const offer = offerOf(boards, agent)
  const shape = shapeFault(a)
  if (shape) return [shape]
  // Nothing is known of the devices yet: the machine itself will say.
  if (boards.length === 0) return []
  if (offer.devices.length === 0) return [error(field, 'gpuNone')]
  switch (a.mode) {
    case 'shares': {
      const shares = a.shares ?? 0
      const most = offer.devices.length
      if (shares > most) return [error(field, 'gpuMax', { count: most })]
      const free = shares <= 1 ? offer.freeOnOne : offer.freeShares
      return shares > free + 1e-9
        ? [warning(field, shares <= 1 ? 'gpuOneWaits' : 'gpuWaits', { free: Math.round(free * 1000) / 1000 })]
        : []
    }
    case 'devices': {
      if ((a.devices ?? 0) > offer.devices.length) return [error(field, 'gpuMax', { count: offer.devices.length })]
      return (a.devices ?? 0) > offer.freeWhole ? [warning(field, 'gpuWholeWaits', { free: offer.freeWhole })] : []
    }
    case 'mig': {
      const profile = offer.profiles.find((p) => p.profile === a.profile)
      if (!profile) return [error(field, 'migNone', { profile: a.profile })]
      return (a.instances ?? 1) > profile.count
        ? [error(field, 'migMax', { count: profile.count, profile: a.profile })]
        : []
    }
    case 'memory': {
      const bytes = amountToBytes(a.memory) ?? 0
      if (bytes > offer.memory) return [error(field, 'vramMax', { bytes: offer.memory })]
      return bytes > offer.freeMemory ? [warning(field, 'vramWaits', { bytes: offer.freeMemory })] : []
    }
  }
}

/** What is wrong with the entry itself, whatever the machine has. */
function shapeFault(a: AcceleratorDraft): Issue | null {
  if (a.mode === 'shares' && !(a.shares !== null && a.shares > 0)) return error(field, 'gpuShare')
  if (a.mode === 'devices' && !whole(a.devices, 1, 1024)) return error(field, 'gpuWhole')
  if (a.mode === 'mig' && a.profile === '') return error(field, 'migRequired')
  if (a.mode === 'mig' && !whole(a.instances, 1, 1024)) return error(field, 'gpuWhole')
  if (a.mode === 'memory' && !((amountToBytes(a.memory) ?? 0) > 0)) return error(field, 'vramRequired')
  return null
}
