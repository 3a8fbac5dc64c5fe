import { Tooltip } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { ResourceBar } from '@/ui/ResourceBar'
import css from './SessionsPage.module.css'

/** A number in its own unit: 12 and GiB. */
export interface Written {
  value: string
  unit: string
  text: string
}

/** One resource of a line: how much of it is held, of how much, and what is left. */
export interface LineAmount {
  key: string
  name: string
  held: Written
  most: Written
  free: Written
  /** The widths of the bar, in the same unit. */
  bar: { promised: number; load?: number; total: number }
}

interface AmountLineProps {
  /** For the screen reader. */
  label: string
  title: ReactNode
  note?: ReactNode
  amounts: readonly LineAmount[]
}

/** Several resources of one holder, in one line. */
export function AmountLine({ label, title, note, amounts }: AmountLineProps) {
  return (
    <section className={css.line} aria-label={label}>
      <div className={css.lineHead}>
        <div className={css.lineTitle}>{title}</div>
        {note ? <div className={css.lineNote}>{note}</div> : null}
      </div>
      {amounts.map((amount) => (
        <OneAmount key={amount.key} amount={amount} />
      ))}
    </section>
  )
}

function OneAmount({ amount: { name, held, most, free, bar } }: { amount: LineAmount }) {
  const { t } = useTranslation('sessions')
  const says =
    `${name}: ${t('panel.heldOf', { held: held.text, total: most.text })}, ` +
    `${t('panel.left', { amount: free.text })}`
  return (
    <Tooltip title={says}>
      <div className={css.lineTile} data-amount={most.unit ? 'bytes' : 'number'}>
        <div className={css.lineText}>
          <span className={css.lineName}>{name}</span>
          <span>
            {held.unit === most.unit ? held.value : held.text} <span className={css.dim}>/ {most.text}</span>
          </span>
          <span className={css.lineFree}>
            {t('panel.left', { amount: free.unit === most.unit ? free.value : free.text })}
          </span>
        </div>
        <ResourceBar label={says} {...bar} />
      </div>
    </Tooltip>
  )
}
