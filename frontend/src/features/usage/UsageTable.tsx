import { Table, Tooltip, type TableColumnsType } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useSessionActions } from '@/lib/actions'
import { formatBytes } from '@/lib/bytes'
import { digits, formatEnergy, formatPercent, isUseKnown, toHours } from '@/lib/share'
import { honesty, type Group, type Grouping, type Sums } from './accounts'
import css from './usage.module.css'

const Quiet = ({ children }: { children: ReactNode }) => <span className={css.dim}>{children}</span>
const hours = (ms: number) => (ms > 0 ? `${digits(toHours(ms))} h` : <Quiet>–</Quiet>)
const gibHours = (mibMs: number) => (mibMs > 0 ? `${digits(toHours(mibMs) / 1024)} GiB·h` : <Quiet>–</Quiet>)

/** How much of the device time was measured, in a word and a number. */
export function Measured({ sums }: { sums: Sums }) {
  const { t } = useTranslation('usage')
  const parts = honesty(sums)
  if (!parts) return <Quiet>–</Quiet>
  const percent = (part: number) => formatPercent(part * 100)
  const text = t('honesty', {
    measured: percent(parts.measured),
    estimated: percent(parts.estimated),
    missed: percent(parts.missed),
  })
  return (
    <Tooltip title={text}>
      <span className={parts.measured < 0.9 ? css.warn : undefined}>{percent(parts.measured)}</span>
    </Tooltip>
  )
}

interface UsageTableProps {
  groups: Group[]
  by: Grouping
  loading: boolean
}

/** What each session, day, project, device or person used. */
export function UsageTable({ groups, by, loading }: UsageTableProps) {
  const { t } = useTranslation('usage')
  const actions = useSessionActions()
  const nameCell = (group: Group) => {
    const { session } = group
    if (group.kind !== 'session')
      return (
        <Quiet>
          {by === 'day' || by === 'device'
            ? `${group.name || '–'} · ${t(`kind.${group.kind}`)}`
            : t(`kind.${group.kind}`)}
        </Quiet>
      )
    if (by !== 'session' || !session) return group.name || <Quiet>{t(by === 'device' ? 'noDevice' : 'noLabel')}</Quiet>
    return (
      <span className={css.cell}>
        <button type="button" className={css.link} onClick={() => actions.showDetail(session)}>
          {group.name}
        </button>
        {group.label ? <span className={css.chip}>{group.label}</span> : null}
      </span>
    )
  }
  const busy = (used: number, within: number) => (
    <span title={used - within >= 1000 ? t('above', { amount: `${digits(toHours(used - within))} h` }) : undefined}>
      {hours(within)}
    </span>
  )
  const number = (key: string, width: number, value: (sums: Sums) => number, render: (sums: Sums) => ReactNode) => ({
    key,
    title: t(`column.${key as 'gpu'}`),
    align: 'right' as const,
    width,
    className: 'num',
    sorter: (a: Group, b: Group) => value(a.sums) - value(b.sums),
    sortDirections: ['descend' as const, 'ascend' as const],
    render: (_: unknown, group: Group) => render(group.sums),
  })
  const columns: TableColumnsType<Group> = [
    {
      key: 'name',
      title: t(`by.${by}`),
      ellipsis: true,
      sorter: (a, b) => a.name.localeCompare(b.name),
      render: (_, group) => nameCell(group),
    },
    number(
      'gpu',
      104,
      (s) => s.allocGpuMs,
      (s) => hours(s.allocGpuMs),
    ),
    number(
      'busy',
      118,
      (s) => s.busyGpuMs,
      (s) =>
        isUseKnown(s) ? (
          <>
            {s.allocGpuMs > 0 ? busy(s.busyGpuMs, s.withinGpuMs) : hours(s.busyGpuMs)}
            {s.allocGpuMs > 0 ? <Quiet> {formatPercent((s.withinGpuMs / s.allocGpuMs) * 100)}</Quiet> : null}
          </>
        ) : (
          <Quiet>–</Quiet>
        ),
    ),
    number(
      'vram',
      100,
      (s) => s.vramMiBMs,
      (s) => gibHours(s.vramMiBMs),
    ),
    number(
      'peak',
      100,
      (s) => s.vramPeak,
      (s) => (s.vramPeak ? formatBytes(s.vramPeak) : <Quiet>–</Quiet>),
    ),
    number(
      'cpu',
      104,
      (s) => s.allocCpuMs,
      (s) => hours(s.allocCpuMs),
    ),
    number(
      'cpuBusy',
      92,
      (s) => s.cpuMs,
      (s) => busy(s.cpuMs, s.withinCpuMs),
    ),
    number(
      'energy',
      88,
      (s) => s.energy,
      (s) => (s.energy > 0 ? formatEnergy(s.energy) : <Quiet>–</Quiet>),
    ),
    number(
      'measured',
      92,
      (s) => honesty(s)?.measured ?? -1,
      (s) => <Measured sums={s} />,
    ),
  ]
  return (
    <Table<Group>
      rowKey="key"
      size="middle"
      columns={columns}
      dataSource={groups}
      loading={loading}
      showSorterTooltip={false}
      scroll={{ x: 960 }}
      pagination={groups.length > 50 ? { pageSize: 50, showSizeChanger: false } : false}
    />
  )
}
