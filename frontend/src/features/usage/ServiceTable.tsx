import { Table, type TableColumnsType } from 'antd'
import { useTranslation } from 'react-i18next'
import type { ServiceUsage } from '@/api/types.gen'
import { FigureText } from './FigureText'
import { ServiceParts } from './ServiceParts'
import { figures, keyOf } from './services'
import css from './usage.module.css'

/** Services, each of which can be opened by its revisions and tokens. */
export function ServiceTable({ rows, from, to }: { rows: ServiceUsage[]; from: string; to: string }) {
  const { t } = useTranslation('usage')
  const columns: TableColumnsType<ServiceUsage> = [
    {
      key: 'service',
      title: t('services.column.service'),
      ellipsis: true,
      sorter: (a, b) => (a.service ?? '').localeCompare(b.service ?? ''),
      render: (_, u) => <b className={css.service}>{u.service}</b>,
    },
    { key: 'machine', title: t('services.column.machine'), width: 110, ellipsis: true, dataIndex: 'agent' },
    { key: 'owner', title: t('services.column.owner'), width: 90, ellipsis: true, dataIndex: 'owner' },
    ...figures.map((figure) => ({
      key: figure.key,
      title: t(`services.column.${figure.key}`),
      align: 'right' as const,
      width: figure.width,
      className: 'num',
      sorter: (a: ServiceUsage, b: ServiceUsage) => figure.value(a) - figure.value(b),
      sortDirections: ['descend' as const, 'ascend' as const],
      render: (_: unknown, u: ServiceUsage) => <FigureText figure={figure} usage={u} />,
    })),
  ]
  return (
    <Table<ServiceUsage>
      rowKey={keyOf}
      size="middle"
      columns={columns}
      dataSource={rows}
      showSorterTooltip={false}
      scroll={{ x: 1180 }}
      pagination={rows.length > 50 ? { pageSize: 50, showSizeChanger: false } : false}
      expandable={{
        expandedRowRender: (usage) => <ServiceParts usage={usage} from={from} to={to} />,
        expandRowByClick: true,
        columnWidth: 32,
      }}
    />
  )
}
