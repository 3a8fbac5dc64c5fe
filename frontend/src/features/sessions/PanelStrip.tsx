import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { statusFamily } from '@/lib/status'
import { ResourceBar } from '@/ui/ResourceBar'
import { write, type Countable } from './panelText'
import type { Sum } from './panels'
import css from './SessionsPage.module.css'

interface PanelStripProps {
  /** The machine, or how many there are. */
  title: string
  sum: Sum
  shown: readonly Countable[]
  sessions: readonly Session[]
}

/** The panels in one line: what is free of the machines that are reached, as one. */
export function PanelStrip({ title, sum, shown, sessions }: PanelStripProps) {
  const { t } = useTranslation('sessions')
  const count = (family: string) => sessions.filter((s) => statusFamily(s.status) === family).length
  return (
    <section className={css.strip} aria-label={t('panel.strip')}>
      <span className={css.stripTitle}>{title}</span>
      {shown
        .filter((resource) => sum.total[resource] > 0)
        .map((resource) => {
          const free = write(resource, sum.free[resource])
          const total = write(resource, sum.total[resource])
          const name = t(`panel.${resource}`)
          const text = t('panel.freeShort', {
            free: free.unit === total.unit ? free.value : free.text,
            total: total.text,
          })
          return (
            <span key={resource} className={css.stripItem}>
              <span className={css.lineName}>{name}</span>
              <span className={css.stripBar}>
                <ResourceBar
                  label={`${name}: ${text}`}
                  promised={sum.promised[resource]}
                  load={sum.load[resource]}
                  total={sum.total[resource]}
                />
              </span>
              <span>{text}</span>
            </span>
          )
        })}
      <span className={css.stripItem}>
        {t('panel.running', { count: count('running') })} · {t('panel.waiting', { count: count('waiting') })}
      </span>
    </section>
  )
}
