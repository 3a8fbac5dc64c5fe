import type { TFunction } from 'i18next'
import type { ReactNode } from 'react'
import type { Session } from '@/api/types.gen'
import type { FillColumn } from '@/ui/FillTable'
import { RelativeTime } from '@/ui/Times'
import { ActionsCell } from './ActionsCell'
import { CpuCell, ElapsedCell, ImageCell, MemoryCell, NameCell, StatusCell } from './cells'
import { EnvironmentCell } from './EnvironmentCell'
import { DependsCell } from './DependsCell'
import type { Sort } from './listState'
import { comparators, foldersOf, type SortKey } from './order'
import { AcceleratorCell, IdleCell, PriorityCell } from './queueCells'
import { ClippedCell, TagsCell } from './tagCells'
import { UsageCell } from './UsageCell'
import css from './SessionsPage.module.css'

/** Columns are sorted by, apart from those whose values come from elsewhere than the session. */
export type ColumnKey = SortKey | 'environment' | 'usage'

interface ColumnShape {
  key: ColumnKey
  width: number
  /** Its part of what is left over; the numbers stay together. */
  grow?: number
  right?: boolean
  render: (session: Session, t: TFunction<['sessions', 'common']>) => ReactNode
}

/** Every column in the order of the table. The first two always show. */
const shapes: ColumnShape[] = [
  { key: 'name', width: 144, grow: 2, render: (s) => <NameCell session={s} /> },
  { key: 'status', width: 228, grow: 5, render: (s) => <StatusCell session={s} /> },
  { key: 'type', width: 90, render: (s, t) => t(`common:type.${s.type}`) },
  { key: 'environment', width: 176, grow: 2, render: (s) => <EnvironmentCell image={s.image} /> },
  { key: 'image', width: 142, grow: 3, render: (s) => <ImageCell image={s.image} /> },
  { key: 'agent', width: 80, render: (s) => s.agent },
  { key: 'accelerator', width: 130, grow: 1, render: (s) => <AcceleratorCell session={s} /> },
  { key: 'cpu', width: 106, right: true, render: (s) => <CpuCell session={s} /> },
  { key: 'memory', width: 132, right: true, render: (s) => <MemoryCell session={s} /> },
  { key: 'usage', width: 212, render: (s) => <UsageCell session={s} /> },
  { key: 'elapsed', width: 74, right: true, render: (s) => <ElapsedCell session={s} /> },
  { key: 'idle', width: 80, render: (s) => <IdleCell session={s} /> },
  { key: 'priority', width: 84, right: true, render: (s) => <PriorityCell session={s} /> },
  { key: 'label', width: 110, render: (s) => s.spec.label || <span className={css.dim}>–</span> },
  { key: 'tags', width: 150, grow: 1, render: (s) => <TagsCell tags={s.tags} /> },
  { key: 'owner', width: 96, render: (s) => s.owner || <span className={css.dim}>–</span> },
  { key: 'cluster', width: 76, right: true, render: (s) => s.spec.cluster ?? 1 },
  { key: 'folders', width: 150, grow: 1, render: (s) => <ClippedCell text={foldersOf(s)} /> },
  { key: 'depends', width: 170, grow: 1, render: (s) => <DependsCell session={s} /> },
  { key: 'created', width: 136, render: (s) => <RelativeTime at={s.createdAt} /> },
  {
    key: 'started',
    width: 136,
    render: (s) => (s.startedAt ? <RelativeTime at={s.startedAt} /> : <span className={css.dim}>–</span>),
  },
  {
    key: 'ended',
    width: 136,
    render: (s) => (s.terminatedAt ? <RelativeTime at={s.terminatedAt} /> : <span className={css.dim}>–</span>),
  },
  { key: 'result', width: 84, render: (s, t) => t(`common:result.${s.result}`) },
  {
    key: 'reason',
    width: 140,
    grow: 1,
    render: (s, t) => (s.reason ? t(`common:reason.${s.reason}`) : <span className={css.dim}>–</span>),
  },
  { key: 'exit', width: 84, right: true, render: (s) => s.exitCode ?? <span className={css.dim}>–</span> },
  { key: 'id', width: 120, render: (s) => <span className={css.mono}>{s.id}</span> },
]

export const columnKeys = shapes.map((shape) => shape.key)
export const fixedColumns: ColumnKey[] = ['name', 'status']
export const liveColumns: ColumnKey[] = ['name', 'status', 'accelerator', 'cpu', 'memory', 'elapsed', 'idle']
export const finishedColumns: ColumnKey[] = ['name', 'status', 'image', 'accelerator', 'ended', 'elapsed']

/** The line over the sessions of one machine or owner. */
export interface Head {
  id: string
  head: string
  count: number
}

export type ListRow = Session | Head

export const isHead = (row: ListRow): row is Head => 'head' in row

/** The columns as the table wants them. Name and actions stay in view when the others are scrolled. */
export function makeColumns(
  shown: ColumnKey[],
  sort: Sort,
  t: TFunction<['sessions', 'common']>,
): FillColumn<ListRow>[] {
  const chosen = shapes.filter((shape) => shown.includes(shape.key) || fixedColumns.includes(shape.key))
  const columns: FillColumn<ListRow>[] = chosen.map((shape) => ({
    key: shape.key,
    title: t(`sessions:column.${shape.key}`),
    width: shape.width,
    grow: shape.grow ?? 0,
    align: shape.right ? 'right' : 'left',
    sorter: shape.key in comparators,
    sortOrder: sort.key === shape.key ? (sort.descending ? 'descend' : 'ascend') : null,
    showSorterTooltip: false,
    ...(shape.key === 'name' ? { fixed: 'start' as const } : {}),
    render: (_, row) => (isHead(row) ? headCell(row, shape.key, t) : shape.render(row, t)),
  }))
  columns.push({
    key: 'actions',
    title: <span className="unseen">{t('sessions:column.actions')}</span>,
    width: 96,
    align: 'right',
    fixed: 'end',
    render: (_, row) => (isHead(row) ? null : <ActionsCell session={row} />),
  })
  return columns
}

function headCell({ head, count }: Head, key: ColumnKey, t: TFunction<['sessions', 'common']>): ReactNode {
  if (key === 'name') return <strong title={head}>{head || '–'}</strong>
  return key === 'status' ? <span className={css.dim}>{t('sessions:shown', { count })}</span> : null
}

/** Puts a head before the first row of each group. */
export function withHeads(rows: readonly Session[], group: 'agent' | 'owner'): ListRow[] {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(row[group], (counts.get(row[group]) ?? 0) + 1)
  return rows.flatMap((row, i) => {
    const head = row[group]
    return rows[i - 1]?.[group] === head ? [row] : [{ id: `head ${head}`, head, count: counts.get(head) ?? 0 }, row]
  })
}
