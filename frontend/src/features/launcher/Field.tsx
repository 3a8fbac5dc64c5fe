import { CircleAlert, TriangleAlert } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { useTranslation } from 'react-i18next'
import css from './launcher.module.css'
import type { Issue } from './issues'
import { issueText } from './issueText'

/** What a control takes over from its field. */
export interface Control {
  id: string
  'aria-describedby': string
  'aria-invalid': boolean
  status: '' | 'error' | 'warning'
}

interface FieldProps {
  label: string
  /** Said beside the label: that a field may stay empty. */
  note?: string
  hint?: ReactNode
  issue?: Issue | undefined
  /** Control at the right of the label, a switch for instance. */
  aside?: ReactNode
  children?: (control: Control) => ReactNode
}

/** A label, its control, and below it what is wrong or worth knowing. */
export function Field({ label, note, hint, issue, aside, children }: FieldProps) {
  const id = useId()
  const control: Control = {
    id,
    'aria-describedby': `${id}-note`,
    'aria-invalid': issue?.severity === 'error',
    status: issue?.severity ?? '',
  }
  return (
    <div className={css.field}>
      <div className={css.label}>
        <label htmlFor={id}>{label}</label>
        {note ? <span className={css.optional}>{note}</span> : null}
        {aside ? <span className={css.aside}>{aside}</span> : null}
      </div>
      {children?.(control)}
      <div id={`${id}-note`}>
        {issue ? <IssueLine issue={issue} /> : null}
        {hint && !issue ? <div className={css.hint}>{hint}</div> : null}
      </div>
    </div>
  )
}

/** One issue as a sentence with its shape and, from the server, what to do. */
export function IssueLine({ issue }: { issue: Issue }) {
  const { t } = useTranslation('launcher')
  const error = issue.severity === 'error'
  const Icon = error ? CircleAlert : TriangleAlert
  return (
    <div className={error ? css.error : css.warning} role={error ? 'alert' : undefined}>
      <Icon size={13} aria-hidden />
      <span>
        {issueText(issue, t)}
        {issue.hint ? <span className={css.issueHint}> {issue.hint}</span> : null}
      </span>
    </div>
  )
}
