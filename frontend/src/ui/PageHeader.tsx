import type { ReactNode } from 'react'
import css from './PageHeader.module.css'

interface PageHeaderProps {
  title: string
  /** One short line beside the title. */
  note?: ReactNode
  /** Buttons at the right. */
  children?: ReactNode
}

export function PageHeader({ title, note, children }: PageHeaderProps) {
  return (
    <div className={css.header} data-tour="head">
      <h1 className={css.title}>{title}</h1>
      {note ? <div className={css.note}>{note}</div> : null}
      <div className={css.actions}>{children}</div>
    </div>
  )
}
