import type { ReactNode } from 'react'
import css from './ListPage.module.css'

interface Part {
  children: ReactNode
}

/** A page whose list fills its height. */
export function ListPage({ children }: Part) {
  return <div className={css.page}>{children}</div>
}

/** The list of a page, under its bar. */
export function ListCard({ children }: Part) {
  return (
    <section className={css.card} data-tour="list">
      {children}
    </section>
  )
}

/** The tabs and fields over a list, or what can be done with the rows that are selected. */
export function ListBar({ selected = false, children }: Part & { selected?: boolean }) {
  return <div className={`${css.bar} ${selected ? css.selected : ''}`}>{children}</div>
}

/** What stands in the middle of a list that has no rows. */
export function ListFill({ children }: Part) {
  return <div className={css.fill}>{children}</div>
}
