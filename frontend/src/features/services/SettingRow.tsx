import { CircleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Fault } from './faults'
import css from './services.module.css'

interface SettingRowProps {
  label: string
  text: string
  fault?: Fault | undefined
  children: ReactNode
}

/** What can be set, with what it does, and its control at the right. */
export function SettingRow({ label, text, fault, children }: SettingRowProps) {
  return (
    <div className={css.row} data-invalid={fault ? true : undefined}>
      <div className={css.words}>
        <div className={css.strong}>{label}</div>
        <div className={css.small}>{text}</div>
        {fault ? (
          <div className={css.fault} role="alert">
            <CircleAlert size={13} aria-hidden />
            <span>{[fault.message, fault.hint].filter(Boolean).join(' ')}</span>
          </div>
        ) : null}
      </div>
      <div className={css.control}>{children}</div>
    </div>
  )
}
