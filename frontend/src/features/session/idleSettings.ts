import type { IdlePolicy, Spec } from '../../api/types.gen'

const METRICS = ['cpu', 'memory', 'gpu', 'vram'] as const
export type IdleMetricName = (typeof METRICS)[number]

/**
 * Settings of the idle checks as they are entered: lengths such as "30m", "" for none; thresholds in percent, null for
 * none.
 */
export interface IdleSettings extends Record<IdleMetricName, number | null> {
  lifetime: string
  network: string
  window: string
  grace: string
  any: boolean
}

/** What a session without a policy of its own is tried with first: what the launcher offers. */
const USUAL: IdlePolicy = { network: '1h', use: { window: '30m', grace: '10m', cpu: 5, gpu: 5 } }

/** The metrics that a session can be judged by: those of devices only where it asked for some. */
export function metricsOf(spec: Spec): readonly IdleMetricName[] {
  return spec.accelerator ? METRICS : (['cpu', 'memory'] as const)
}

/** The settings to begin with: those of the session, or the usual ones. */
export function settingsOf(spec: Spec): IdleSettings {
  const { lifetime, network, use } = spec.idle ?? USUAL
  const known = metricsOf(spec)
  const threshold = (name: IdleMetricName) => (known.includes(name) ? (use?.[name] ?? null) : null)
  return {
    lifetime: lifetime ?? '',
    network: spec.type === 'batch' ? '' : (network ?? ''),
    window: use?.window ?? '',
    grace: use?.grace ?? '',
    any: use?.any ?? false,
    cpu: threshold('cpu'),
    memory: threshold('memory'),
    gpu: threshold('gpu'),
    vram: threshold('vram'),
  }
}

/** The policy that settings mean. Without a threshold there is no check of use, whatever its window. */
export function toPolicy(settings: IdleSettings): IdlePolicy {
  const policy: IdlePolicy = {}
  const text = (value: string) => value.trim()
  if (text(settings.lifetime)) policy.lifetime = text(settings.lifetime)
  if (text(settings.network)) policy.network = text(settings.network)
  const thresholds = METRICS.filter((name) => settings[name] !== null)
  if (thresholds.length === 0) return policy
  policy.use = { window: text(settings.window) || '30m' }
  if (text(settings.grace)) policy.use.grace = text(settings.grace)
  if (settings.any) policy.use.any = true
  for (const name of thresholds) policy.use[name] = settings[name] ?? 0
  return policy
}
