import { type ReactNode, useId } from 'react'
import css from './form.module.css'

/** One matter of the form. */
export function FormCard({ title, text, children }: { title: string; text?: string; children: ReactNode }) {
  const id = useId()
  return (
    <section className={css.card} aria-labelledby={id}>
      <div>
        <h2 id={id} className={css.cardTitle}>
          {title}
        </h2>
        {text ? <p className={css.cardText}>{text}</p> : null}
      </div>
      {children}
    </section>
  )
}
