import { Table, type TableColumnsType } from 'antd'
import { useTranslation } from 'react-i18next'
import { figures, type Figure, type ServiceRow } from './services'
import css from './usage.module.css'

function FigureText({ figure, row }: { figure: Figure; row: ServiceRow }) {
  const { t } = useTranslation('usage')
  const shared = row.part === 'token' && figure.ofReplicas
  if (shared || figure.value(row.usage) === 0)
    return (
      <span className={css.dim} title={shared ? t('services.shared') : undefined}>
        –
      </span>
    )
  return <span className={figure.key === 'failed' ? css.bad : undefined}>{figure.text(row.usage)}</span>
}

function Name({ row: { part, usage } }: { row: ServiceRow }) {
  const { t } = useTranslation('usage')
  const token = usage.tokenName || usage.token
  if (part === 'revision') return t('services.revision', { number: usage.revision })
  if (part === 'token') return token ? t('services.token', { name: token }) : t('services.noToken')
  return (
    <>
      <b className={css.service}>{usage.service}</b>{' '}
      <span className={css.dim}>{[usage.agent, usage.owner].filter(Boolean).join(' · ')}</span>
    </>
  )
}

/** Services, each of which can be opened by its revisions and tokens. */
export function ServiceTable({ rows }: { rows: ServiceRow[] }) {
  const { t } = useTranslation('usage')
  const columns: TableColumnsType<ServiceRow> = [
    {
      key: 'service',
      title: t('services.column.service'),
      ellipsis: true,
      sorter: (a, b) => a.key.localeCompare(b.key),
      render: (_, row) => <Name row={row} />,
    },
    ...figures.map((figure) => ({
      key: figure.key,
      title: t(`services.column.${figure.key}`),
      align: 'right' as const,
      width: figure.width,
      className: 'num',
      sorter: (a: ServiceRow, b: ServiceRow) => figure.value(a.usage) - figure.value(b.usage),
      sortDirections: ['descend' as const, 'ascend' as const],
      render: (_: unknown, row: ServiceRow) => <FigureText figure={figure} row={row} />,
    })),
  ]
  return (
    <Table<ServiceRow>
      size="middle"
      columns={columns}
      dataSource={rows}
      showSorterTooltip={false}
      scroll={{ x: 940 }}
      pagination={rows.length > 50 ? { pageSize: 50, showSizeChanger: false } : false}
      expandable={{ expandRowByClick: true, indentSize: 8 }}
    />
  )
}
