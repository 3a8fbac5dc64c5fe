import { useTranslation } from 'react-i18next'
import { useSessionBook } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { StatusBadge } from '@/ui/StatusBadge'
import css from './SessionDrawer.module.css'

function List({ title, ids }: { title: string; ids: readonly string[] }) {
  const book = useSessionBook().data
  const actions = useSessionActions()
  const { t } = useTranslation('session')
  if (ids.length === 0) return null
  return (
    <div className={css.depends}>
      <span className={css.dim}>{title}</span>
      <ul>
        {ids.map((id) => {
          const other = book?.[id]
          return (
            <li key={id}>
              <button type="button" className={css.inlineLink} onClick={() => actions.showDetail(id)}>
                {other?.name ?? id}
              </button>
              {other ? (
                <StatusBadge status={other.status} />
              ) : (
                <span className={css.dim}>{t('depends.elsewhere')}</span>
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

/** What a session waits for, and what waits for it. */
export function Dependencies({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  if (session.dependsOn.length === 0 && session.dependents.length === 0) return null
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t('section.depends')}</h3>
      </div>
      <List title={t('depends.on')} ids={session.dependsOn} />
      <List title={t('depends.by')} ids={session.dependents} />
    </section>
  )
}
