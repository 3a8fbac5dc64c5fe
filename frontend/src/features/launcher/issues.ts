import type { FieldProblem } from '../../api/types.gen'
import { type Draft, type Step, STEPS } from './draft'
import { tokenOfPort } from './ports'

/**
 * What is wrong, or worth knowing, about one field. The field is its path in
 * the spec ("env[2].name"), the same that the server uses. Either key names a
 * text of this program, or message is the server's own sentence.
 */
export interface Issue {
  field: string
  severity: 'error' | 'warning'
  key?: string
  values?: Record<string, string | number>
  message?: string
  hint?: string
  /** The code that the server gave it. */
  code?: string
}

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
  image: 'environment',
  env: 'environment',
  resources: 'environment',
  threads: 'environment',
  accelerator: 'environment',
  mps: 'environment',
  cluster: 'environment',
  count: 'environment',
  agent: 'environment',
  owner: 'environment',
  group: 'environment',
  mounts: 'storage',
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
 * known here already keeps its own text; a port's path is that of the token it
 * was typed in.
 */
export function mergeIssues(
  own: readonly Issue[],
  draft: Draft,
  errors: readonly FieldProblem[],
  warnings: readonly FieldProblem[],
): Issue[] {
  const merged = [...own]
  const add = (problem: FieldProblem, severity: Issue['severity']) => {
    const field = fieldOf(problem.field, draft)
    const known = merged.some(
      (issue) => issue.field === field && (issue.severity === 'error' || severity === 'warning'),
    )
    if (!known) merged.push({ field, severity, code: problem.code, ...saidOf(problem, draft) })
  }
  errors.forEach((problem) => add(problem, 'error'))
  warnings.forEach((problem) => add(problem, 'warning'))
  return merged
}

/** In the reader's language where the code says all that there is to say, else the server's own sentence. */
function saidOf(
  { field, code, message, hint }: FieldProblem,
  draft: Draft,
): Pick<Issue, 'key' | 'values' | 'message' | 'hint'> {
  const folder =
    code === 'session_create_no-folder'
      ? draft.mounts[Number(/^mounts\[(\d+)\]\.folder$/.exec(field)?.[1])]?.folder
      : undefined
  return folder ? { key: 'folderGone', values: { name: folder } } : { message, ...(hint === undefined ? {} : { hint }) }
}

function fieldOf(path: string, draft: Draft): string {
  const port = /^ports\[(\d+)\]/.exec(path)
  if (!port) return path
  const token = tokenOfPort(draft.ports, Number(port[1]))
  return token < 0 ? 'ports' : `ports[${token}]`
}
