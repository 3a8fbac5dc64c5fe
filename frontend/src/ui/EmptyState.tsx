import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import css from './States.module.css'

interface EmptyStateProps {
  icon: LucideIcon
  title: string
  text?: ReactNode
  /** The next step, usually one button. */
  children?: ReactNode
}

/** A view with nothing in it: one sentence why, and the next step. */
export function EmptyState({ icon: Icon, title, text, children }: EmptyStateProps) {
  return (
    <div className={css.state}>
      <Icon size={30} strokeWidth={1.5} className={css.dim} aria-hidden />
      <div className={css.title}>{title}</div>
      {text ? <div className={css.text}>{text}</div> : null}
      {children}
    </div>
  )
}
