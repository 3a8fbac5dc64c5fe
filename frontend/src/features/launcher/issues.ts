import type { FieldProblem, Spec } from '../../api/types.gen'
import { messageText } from '../../lib/phrases'
import { type Draft, type Step, STEPS } from './draft'
import { tokenOfPort } from './ports'

/**
 * What is wrong, or worth knowing, about one field. The field is its path in
 * the spec ("env[2].name"), the same that the server uses. Key names a text of
 * this program, or where there is a message the phrase that the server said.
 */
export interface Issue {
  field: string
  severity: 'error' | 'warning'
  key?: string
  values?: Record<string, string | number>
  message?: string
  hint?: string
  /** Nothing is entered yet: it is pointed out once the step was left. */
  missing?: true
}

type Make = (field: string, key: string, values?: Issue['values']) => Issue
export const error: Make = (field, key, values) => ({ field, severity: 'error', key, ...(values ? { values } : {}) })
export const warning: Make = (field, key, values) => ({ ...error(field, key, values), severity: 'warning' })
export const missing: Make = (field, key) => ({ ...error(field, key), missing: true })

const STEP_OF: Record<string, Step> = {
  name: 'type',
  type: 'type',
  command: 'type',
  notBefore: 'type',
  timeout: 'type',
  priority: 'type',
  after: 'type',
  pendingTimeout: 'type',
  label: 'type',
  idle: 'type',
  commitOnEnd: 'type',
  agent: 'type',
  owner: 'type',
  group: 'type',
  slurm: 'environment',
  image: 'environment',
  setup: 'environment',
  env: 'environment',
  secrets: 'environment',
  resources: 'environment',
  threads: 'environment',
  accelerator: 'environment',
  mps: 'environment',
  cluster: 'environment',
  admin: 'environment',
  count: 'environment',
  mounts: 'storage',
  keepHome: 'storage',
  ports: 'network',
}

/** The step on which a field is entered. What belongs to none is shown on the last. */
export function stepOf(field: string): Step {
  return STEP_OF[/^[a-zA-Z]+/.exec(field)?.[0] ?? ''] ?? 'confirm'
}

/** The issues of one step. */
export function issuesOf(issues: readonly Issue[], step: Step): Issue[] {
  return issues.filter((issue) => stepOf(issue.field) === step)
}

/** The issue to show at a field: an error before a warning. */
export function issueAt(issues: readonly Issue[], field: string): Issue | undefined {
  const here = issues.filter((issue) => issue.field === field)
  return here.find((issue) => issue.severity === 'error') ?? here[0]
}

/** The steps that hold an error, in their order. */
export function stepsInError(issues: readonly Issue[]): Step[] {
  return STEPS.filter((step) => issuesOf(issues, step).some((issue) => issue.severity === 'error'))
}

/**
 * Puts what the server found beside what was found here. A field whose fault is
 * known here already keeps its own text, and an error takes the place of a
 * warning; a port's path is that of the token it was typed in.
 */
export function mergeIssues(
  own: readonly Issue[],
  draft: Draft,
  errors: readonly FieldProblem[],
  warnings: readonly FieldProblem[],
): Issue[] {
  let merged = [...own]
  const add = (problem: FieldProblem, severity: Issue['severity']) => {
    const field = fieldOf(problem.field, draft)
    const here = merged.filter((issue) => issue.field === field)
    if (here.some((issue) => issue.severity === 'error' || severity === 'warning')) return
    const key = problem.said?.[0]?.say
    merged = merged.filter((issue) => !here.includes(issue))
    merged.push({
      field,
      severity,
      message: messageText(problem),
      ...(key ? { key } : {}),
      ...(problem.hint ? { hint: problem.hint } : {}),
    })
  }
  errors.forEach((problem) => add(problem, 'error'))
  warnings.forEach((problem) => add(problem, 'warning'))
  return merged
}

/**
 * Whether what was found in a spec still says where it is in the next one. An
 * entry of a list has its place as long as none is added or removed.
 */
export function stands({ field }: FieldProblem, found: Spec, next: Spec): boolean {
  const list = /^(env|secrets|mounts|ports|after)\[/.exec(field)?.[1] as 'env' | undefined
  return !list || found[list]?.length === next[list]?.length
}

function fieldOf(path: string, draft: Draft): string {
  const port = /^ports\[(\d+)\]/.exec(path)
  if (!port) return path
  const token = tokenOfPort(draft.ports, Number(port[1]))
  return token < 0 ? 'ports' : `ports[${token}]`
}
