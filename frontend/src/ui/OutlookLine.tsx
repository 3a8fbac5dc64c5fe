import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import css from './outlook.module.css'

/** One thing that would happen, or why that is not known. */
export function OutlookLine({
  icon: Icon,
  kind,
  title,
  children,
}: {
  icon: LucideIcon
  kind: 'good' | 'slow' | 'bad' | 'busy'
  title: string
  children?: ReactNode
}) {
  return (
    <div className={`${css.outlook} ${css[kind]}`} data-outlook={kind}>
      <Icon size={16} aria-hidden className={Icon === LoaderCircle ? css.turn : undefined} />
      <div>
        <div className={css.outlookTitle}>{title}</div>
        {children ? <div className={css.outlookText}>{children}</div> : null}
      </div>
    </div>
  )
}
