import { Tooltip } from 'antd'
import { Globe } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import type { Service } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import { type FillColumn, FillTable } from '@/ui/FillTable'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { ServiceBadge } from './ServiceBadge'
import { healthyOf, stateRank, toneOf } from './states'
import css from './services.module.css'

interface ServicesTableProps {
  rows: Service[]
  /** There are several machines: say on which each service is. */
  several: boolean
  open: Pick<Service, 'name' | 'agent'> | undefined
  /** The address of a service's detail. */
  linkOf: (service: Service) => string
}

/** Services with the numbers that change all the time. */
export function ServicesTable({ rows, several, open, linkOf }: ServicesTableProps) {
  const { t } = useTranslation('services')
  const navigate = useNavigate()
  const number = (key: string, title: string, width: number, of: (s: Service) => number, text = formatCount) => ({
    key,
    title,
    width,
    align: 'right' as const,
    sorter: (a: Service, b: Service) => of(a) - of(b),
    render: (_: unknown, s: Service) => <span className={of(s) ? 'num' : `num ${css.dim}`}>{text(of(s))}</span>,
  })
  const columns: FillColumn<Service>[] = [
    {
      key: 'name',
      title: t('column.name'),
      width: 140,
      grow: 1,
      ellipsis: true,
      sorter: (a, b) => a.name.localeCompare(b.name),
      render: (_, s) => (
        <span className={css.name}>
          <Link className={css.nameLink} to={linkOf(s)} title={s.name} onClick={(event) => event.stopPropagation()}>
            {s.name}
          </Link>
          {s.public ? (
            <Tooltip title={t('publicMark')}>
              <Globe size={13} role="img" aria-label={t('publicMark')} className={css.warn} />
            </Tooltip>
          ) : null}
        </span>
      ),
    },
    {
      key: 'state',
      title: t('column.state'),
      width: 180,
      grow: 4,
      sorter: (a, b) => stateRank(a.state) - stateRank(b.state),
      render: (_, s) => (
        <div className={css.stateCell}>
          <ServiceBadge state={s.state} />
          {s.why ? (
            <Tooltip title={s.why} mouseEnterDelay={0.4}>
              <span className={`${css.why} ${toneOf(s.state) === 'bad' ? css.whyBad : ''}`}>{s.why}</span>
            </Tooltip>
          ) : null}
        </div>
      ),
    },
    {
      key: 'healthy',
      title: t('column.healthy'),
      width: 84,
      align: 'right',
      sorter: (a, b) => healthyOf(a) - healthyOf(b),
      render: (_, s) => (
        <span className={s.replicas ? 'num' : `num ${css.dim}`}>
          {t('healthyOf', { healthy: healthyOf(s), count: s.replicas })}
        </span>
      ),
    },
    number('requests', t('column.requests'), 86, (s) => s.traffic.requests),
    number('tokens', t('column.tokens'), 92, (s) => s.traffic.completionTokens),
    number('first', t('column.first'), 88, (s) => s.traffic.firstWordMs, formatFirstWord),
    number('waiting', t('column.waiting'), 74, (s) => s.traffic.waiting),
    ...(several
      ? [
          {
            key: 'agent',
            title: t('column.agent'),
            width: 100,
            ellipsis: true,
            sorter: (a: Service, b: Service) => a.agent.localeCompare(b.agent),
            render: (_: unknown, s: Service) => s.agent,
          },
        ]
      : []),
    {
      key: 'address',
      title: t('column.address'),
      width: 186,
      ellipsis: true,
      render: (_, s) =>
        s.address ? (
          // What is copied opens no detail.
          <span className={css.address} onClick={(event) => event.stopPropagation()}>
            <code title={s.address}>{s.address.replace(/^http:\/\//, '')}</code>
            <CopyButton text={s.address} label={t('copyAddress', { name: s.name })} />
          </span>
        ) : (
          <span className={css.dim}>{t('noAddress')}</span>
        ),
    },
  ]
  return (
    <FillTable<Service>
      className={css.table}
      rowKey={(s) => `${s.agent}/${s.name}`}
      dataSource={rows}
      columns={columns}
      rowClassName={(s) => (open && s.name === open.name && s.agent === open.agent ? (css.open ?? '') : '')}
      onRow={(s) => ({ onClick: () => void navigate(linkOf(s)) })}
    />
  )
}
