import { type ReactNode, useId } from 'react'
import css from './launcher.module.css'

interface CardProps {
  title: string
  text?: string
  aside?: ReactNode
  /** Something in it is wrong. */
  bad?: boolean
  children: ReactNode
}

/** One matter of a step. */
export function Card({ title, text, aside, bad, children }: CardProps) {
  const id = useId()
  return (
    <section className={`${css.card} ${bad ? css.cardBad : ''}`} aria-labelledby={id}>
      <div className={css.cardHead}>
        <div>
          <h2 id={id} className={css.cardTitle}>
            {title}
          </h2>
          {text ? <p className={css.cardText}>{text}</p> : null}
        </div>
        {aside ? <div className={css.aside}>{aside}</div> : null}
      </div>
      {children}
    </section>
  )
}
