import { useTranslation } from 'react-i18next'
import type { ResourceSummary } from '@/api/types.gen'
import { ResourceBar } from '@/ui/ResourceBar'
import { write } from './panelText'
import css from './SessionsPage.module.css'

/** The most that one may hold of a machine, and how much of that one holds. */
export function LimitPanels({ summary, named }: { summary: ResourceSummary; named: boolean }) {
  const { t } = useTranslation('sessions')
  const { limit, mine } = summary
  if (!limit) return null
  const sessions = { key: 'sessions', held: limit.sessionsHeld, most: limit.sessions, text: (n: number) => String(n) } as const
  const amounts = (['cpu', 'memory', 'gpu'] as const).map((key) => ({ key, held: mine[key], most: limit[key], text: (n: number) => write(key, n).text }))
  const title = named ? t('panel.limitOn', { agent: summary.agent }) : t('panel.limit')
  return (
    <section className={css.mine} aria-label={title}>
      <span className={css.mineName}>{title}</span>
      {[sessions, ...amounts]
        .filter((one) => one.most > 0)
        .map(({ key, held, most, text }) => (
          <div key={key} className={css.mineTile}>
            <div className={css.mineText}>
              <span>{t(`panel.${key}`)}</span>
              <span>
                {text(held)} <span className={css.dim}>/ {text(most)}</span>
              </span>
            </div>
            <ResourceBar label={`${t(`panel.${key}`)}: ${t('panel.mineOf', { mine: text(held), total: text(most) })}`} promised={0} load={Math.min(held, most)} total={most} />
          </div>
        ))}
    </section>
  )
}
