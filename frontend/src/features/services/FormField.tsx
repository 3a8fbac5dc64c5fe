import { CircleAlert } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import css from './services.module.css'
import type { Fault } from './faults'

/** What a control takes over from its field. */
export interface Control {
  id: string
  'aria-describedby': string
  'aria-invalid': boolean
  status: '' | 'error'
}

interface FormFieldProps {
  label: string
  /** Said beside the label: that a field may stay empty. */
  note?: string | undefined
  hint?: ReactNode
  fault?: Fault | undefined
  /** At the right of the label. */
  aside?: ReactNode
  children: (control: Control) => ReactNode
}

/** A label, its control, and below it what is wrong or worth knowing. */
export function FormField({ label, note, hint, fault, aside, children }: FormFieldProps) {
  const id = useId()
  return (
    <div className={css.field} data-invalid={fault ? true : undefined}>
      <div className={css.label}>
        <label htmlFor={id}>{label}</label>
        {note ? <span className={css.optional}>{note}</span> : null}
        {aside ? <span className={css.end}>{aside}</span> : null}
      </div>
      {children({
        id,
        'aria-describedby': `${id}-note`,
        'aria-invalid': fault !== undefined,
        status: fault ? 'error' : '',
      })}
      <div id={`${id}-note`}>
        {fault ? (
          <div className={css.fault} role="alert">
            <CircleAlert size={13} aria-hidden />
            <span>{[fault.message, fault.hint].filter(Boolean).join(' ')}</span>
          </div>
        ) : hint ? (
          <div className={css.small}>{hint}</div>
        ) : null}
      </div>
    </div>
  )
}
