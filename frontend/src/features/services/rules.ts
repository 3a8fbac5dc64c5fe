import type { ScalingRule } from '@/api/types.gen'

export const ruleSources = ['router', 'framework', 'device'] as const
export type RuleSource = (typeof ruleSources)[number]

/** The metrics of the sources that have a fixed list. */
export const fixedMetrics = {
  router: ['outstanding', 'waiting', 'rps'],
  device: ['gpu_util', 'gpu_mem', 'cpu_util', 'mem'],
} as const

export type FixedMetric = (typeof fixedMetrics)['router' | 'device'][number]

/** Metrics of model servers that tell how much they have to do. */
export const serverMetrics = [
  'vllm:num_requests_waiting',
  'vllm:num_requests_running',
  'sglang:num_queue_reqs',
  'sglang:num_running_reqs',
  'llamacpp:requests_deferred',
  'llamacpp:requests_processing',
  'tgi_queue_size',
]

/** A scaling rule as it is entered. What is null is as usual. */
export interface RuleDraft {
  source: RuleSource
  metric: string
  up: number | null
  down: number | null
  step: number | null
  /** Seconds. */
  window: number | null
  /** Seconds. */
  cooldown: number | null
  min: number | null
  max: number | null
}

export const usualWindow = 60
export const usualCooldown = 300

/** A first rule: more than four requests at a time for each replica are many for most servers. */
export const FIRST_RULE: RuleDraft = {
  source: 'router',
  metric: 'outstanding',
  up: 4,
  down: 1,
  step: null,
  window: null,
  cooldown: null,
  min: null,
  max: 4,
}

const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

function secondsOf(text: string | undefined): number | null {
  const [, value, unit = ''] = /^(\d+)([smhdw])$/.exec(text ?? '') ?? []
  return value ? Number(value) * (units[unit] ?? 1) : null
}

const isSource = (text: string): text is RuleSource => ruleSources.some((source) => source === text)

export const ruleDraftOf = (rule: ScalingRule): RuleDraft => ({
  source: isSource(rule.metricSource) ? rule.metricSource : 'framework',
  metric: rule.metricName,
  up: rule.scaleUpThreshold ?? null,
  down: rule.scaleDownThreshold ?? null,
  step: rule.stepSize ?? null,
  window: secondsOf(rule.window),
  cooldown: secondsOf(rule.cooldown),
  min: rule.minReplicas ?? null,
  max: rule.maxReplicas ?? null,
})

export const ruleOf = (draft: RuleDraft): ScalingRule => ({
  metricSource: draft.source,
  metricName: draft.metric.trim(),
  ...(draft.up !== null ? { scaleUpThreshold: draft.up } : {}),
  ...(draft.down !== null ? { scaleDownThreshold: draft.down } : {}),
  ...(draft.step ? { stepSize: draft.step } : {}),
  ...(draft.window ? { window: `${draft.window}s` } : {}),
  ...(draft.cooldown ? { cooldown: `${draft.cooldown}s` } : {}),
  ...(draft.min ? { minReplicas: draft.min } : {}),
  ...(draft.max ? { maxReplicas: draft.max } : {}),
})

/** What can be seen to be wrong with a rule. */
export type RuleFault = 'metric' | 'threshold' | 'order' | 'limits'

export function ruleFault({ metric, up, down, min, max }: RuleDraft): RuleFault | undefined {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(metric.trim())) return 'metric'
  if (up === null && down === null) return 'threshold'
  if (up !== null && down !== null && down >= up) return 'order'
  if (max && (min ?? 1) > max) return 'limits'
  return undefined
}

/** Whether the values of a rule are percentages. */
export const isPercent = ({ source }: Pick<RuleDraft, 'source'>) => source === 'device'
