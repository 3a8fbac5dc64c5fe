import { Checkbox, Tooltip, type TableProps } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { FillTable, named } from '@/ui/FillTable'
import { type IsMine } from './filter'
import { type ColumnKey, isHead, type ListRow, makeColumns, withHeads } from './columns'
import type { Grouping, Sort } from './listState'
import type { SortKey } from './order'
import css from './SessionsPage.module.css'

interface SessionsTableProps {
  rows: Session[]
  shown: ColumnKey[]
  group: Grouping
  dense: boolean
  sort: Sort
  onSort: (sort: Sort) => void
  selected: string[]
  onSelect: (ids: string[]) => void
  selectable: boolean
  isMine: IsMine
  openId: string | undefined
  onOpen: (id: string) => void
}

const checkWidth = 40

/** Selects one's own sessions: those of others are selected one by one. */
function SelectAll({
  rows,
  selected,
  onSelect,
  isMine,
}: Pick<SessionsTableProps, 'rows' | 'selected' | 'onSelect' | 'isMine'>) {
  const { t } = useTranslation('sessions')
  const live = rows.filter((row) => isLive(row.status))
  const mine = live.filter(isMine).map((row) => row.id)
  const chosen = new Set(selected)
  const all = selected.length > 0 && mine.every((id) => chosen.has(id))
  const box = (
    <Checkbox
      aria-label={t('selectAll')}
      checked={all}
      indeterminate={!all && selected.length > 0}
      disabled={mine.length === 0 && selected.length === 0}
      onChange={() => onSelect(all ? [] : [...new Set([...selected, ...mine])])}
    />
  )
  return mine.length < live.length ? <Tooltip title={t('selectMine')}>{box}</Tooltip> : box
}

/** The sessions of one tab. */
export function SessionsTable(props: SessionsTableProps) {
  const { rows, shown, group, dense, sort, onSort, selected, onSelect, selectable, isMine, openId, onOpen } = props
  const { t } = useTranslation(['sessions', 'common'])
  const columns = useMemo(() => makeColumns(shown, sort, t), [shown, sort, t])
  const listed = useMemo(() => (group === 'none' ? rows : withHeads(rows, group)), [rows, group])
  const change: TableProps<ListRow>['onChange'] = (_page, _filters, sorter) => {
    const one = Array.isArray(sorter) ? sorter[0] : sorter
    const key = one?.columnKey as SortKey | undefined
    // The third click on a header goes back to the newest first.
    onSort(key && one?.order ? { key, descending: one.order === 'descend' } : { key: 'created', descending: true })
  }
  return (
    <FillTable<ListRow>
      className={`${css.table} ${dense ? css.dense : ''}`}
      dense={dense}
      rowKey="id"
      dataSource={listed}
      columns={columns}
      onChange={change}
      rowClassName={(row) =>
        isHead(row)
          ? (css.head ?? '')
          : `${row.id === openId ? css.open : ''} ${row.lastHeard && isLive(row.status) ? css.unheard : ''}`
      }
      onRow={(row) => (isHead(row) ? {} : { onClick: () => onOpen(row.id) })}
      rowSelection={
        selectable
          ? {
              columnWidth: checkWidth,
              fixed: true,
              columnTitle: <SelectAll rows={rows} selected={selected} onSelect={onSelect} isMine={isMine} />,
              selectedRowKeys: selected,
              onChange: (keys) => onSelect(keys.map(String)),
              preserveSelectedRowKeys: false,
              renderCell: (_on, row, _index, box) =>
                isHead(row) ? null : named(box, t('sessions:select', { name: row.name })),
              getCheckboxProps: (row) => ({ disabled: isHead(row) || !isLive(row.status) }),
            }
          : undefined
      }
    />
  )
}
