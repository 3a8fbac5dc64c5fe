import type { TFunction } from 'i18next'
import { formatBytes } from '@/lib/bytes'
import type { Step } from './draft'
import { type Issue, issueAt, stepOf } from './issues'

/** The sentence of an issue. */
export function issueText(issue: Issue, t: TFunction<'launcher'>): string {
  if (issue.message !== undefined) return issue.message
  const { bytes, ...values } = issue.values ?? {}
  const amount = typeof bytes === 'number' ? { amount: formatBytes(bytes) } : {}
  // Parts of one GPU are "0.5 GPU", more than one are "1.5 GPUs".
  const count = typeof values.free === 'number' ? { count: Math.ceil(values.free) } : {}
  return t(`issue.${issue.key as 'cpuWhole'}`, { ...values, ...amount, ...count })
}

/** What the fields of a step need to know of the issues. */
export interface Issues {
  all: readonly Issue[]
  /** The issue to show at a field now. */
  at: (field: string) => Issue | undefined
}

/** The issues as they are shown: what was not entered yet waits until its step was left. */
export function shownIssues(issues: readonly Issue[], left: ReadonlySet<Step>): Issues {
  const shown = issues.filter((issue) => !issue.missing || left.has(stepOf(issue.field)))
  return { all: shown, at: (field) => issueAt(shown, field) }
}
