import { Tooltip } from 'antd'
import { ArrowLeft, ArrowRight, type LucideIcon } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useSessionBook } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import css from './SessionsPage.module.css'

function Names({ icon: Icon, title, names }: { icon: LucideIcon; title: string; names: string }) {
  return (
    <Tooltip title={`${title}: ${names}`} mouseEnterDelay={0.4}>
      <span className={css.depends}>
        <Icon size={13} role="img" aria-label={title} />
        <span className={css.clipped}>{names}</span>
      </span>
    </Tooltip>
  )
}

/** The sessions that one waits for, and those that wait for it. */
export function DependsCell({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const book = useSessionBook().data
  const { dependsOn, dependents } = session
  const names = (ids: readonly string[]) => ids.map((id) => book?.[id]?.name ?? id).join(', ')
  if (dependsOn.length + dependents.length === 0) return <span className={css.dim}>–</span>
  return (
    <div className={css.dependsLines}>
      {dependsOn.length > 0 ? <Names icon={ArrowRight} title={t('depends.on')} names={names(dependsOn)} /> : null}
      {dependents.length > 0 ? <Names icon={ArrowLeft} title={t('depends.by')} names={names(dependents)} /> : null}
    </div>
  )
}
