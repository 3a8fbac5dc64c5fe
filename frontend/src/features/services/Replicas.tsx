import { Button } from 'antd'
import { BrainCircuit, ScrollText } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useSessionBook } from '@/api/hooks'
import type { Service } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { RelativeTime } from '@/ui/Times'
import { whyText } from '@/lib/phrases'
import { ReplicaBadge } from '@/ui/ServiceBadge'
import css from './services.module.css'

/** The sessions that serve a service now. */
export function Replicas({ service }: { service: Service }) {
  const { t } = useTranslation('services')
  const book = useSessionBook().data
  const ended = `/sessions?type=inference&state=finished&q=${encodeURIComponent(service.name)}`
  if (service.live.length === 0) {
    return (
      // Why there are none is said above.
      <EmptyState icon={BrainCircuit} title={t('replica.none')}>
        <Link to={ended}>
          <Button>{t('replica.ended')}</Button>
        </Link>
      </EmptyState>
    )
  }
  return (
    <div className={css.parts}>
      <table className={css.grid}>
        <thead>
          <tr>
            <th>{t('replica.session')}</th>
            <th>{t('replica.state')}</th>
            <th>{t('replica.revision')}</th>
            <th>{t('replica.since')}</th>
            <th className={css.right}>{t('replica.outstanding')}</th>
            <th>
              <span className="unseen">{t('replica.log')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {service.live.map((replica) => (
            <tr key={replica.session}>
              <td>
                <Link to={`/sessions/${replica.session}`}>{book?.[replica.session]?.name ?? replica.session}</Link>
                {replica.why ? <div className={css.small}>{whyText(replica)}</div> : null}
              </td>
              <td>
                <ReplicaBadge state={replica.state} />
              </td>
              <td className="num">{replica.revision}</td>
              <td>
                <RelativeTime at={replica.since} short />
              </td>
              <td className={`num ${css.right}`}>{replica.outstanding}</td>
              <td className={css.right}>
                <Link className={css.iconLink} to={`/sessions/${replica.session}?view=logs`}>
                  <ScrollText size={14} aria-hidden />
                  {t('replica.log')}
                </Link>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Link to={ended}>{t('replica.ended')}</Link>
    </div>
  )
}
