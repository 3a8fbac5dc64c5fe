import type { TableProps } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { FillTable } from '@/ui/FillTable'
import { type ColumnKey, makeColumns } from './columns'
import type { Sort } from './listState'
import type { SortKey } from './order'
import css from './SessionsPage.module.css'

interface SessionsTableProps {
  rows: Session[]
  shown: ColumnKey[]
  sort: Sort
  onSort: (sort: Sort) => void
  selected: string[]
  onSelect: (ids: string[]) => void
  selectable: boolean
  openId: string | undefined
  onOpen: (id: string) => void
}

const checkWidth = 40

/** The sessions of one tab. */
export function SessionsTable(props: SessionsTableProps) {
  const { rows, shown, sort, onSort, selected, onSelect, selectable, openId, onOpen } = props
  const { t } = useTranslation(['sessions', 'common'])
  const columns = useMemo(() => makeColumns(shown, sort, t), [shown, sort, t])
  const change: TableProps<Session>['onChange'] = (_page, _filters, sorter) => {
    const one = Array.isArray(sorter) ? sorter[0] : sorter
    const key = one?.columnKey as SortKey | undefined
    // The third click on a header goes back to the newest first.
    onSort(key && one?.order ? { key, descending: one.order === 'descend' } : { key: 'created', descending: true })
  }
  return (
    <FillTable<Session>
      className={css.table}
      rowKey="id"
      dataSource={rows}
      columns={columns}
      onChange={change}
      rowClassName={(session) =>
        `${session.id === openId ? css.open : ''} ${session.lastHeard && isLive(session.status) ? css.unheard : ''}`
      }
      onRow={(session) => ({ onClick: () => onOpen(session.id) })}
      rowSelection={
        selectable
          ? {
              columnWidth: checkWidth,
              selectedRowKeys: selected,
              onChange: (keys) => onSelect(keys.map(String)),
              preserveSelectedRowKeys: false,
              getCheckboxProps: (session) => ({
                disabled: !isLive(session.status),
                'aria-label': t('sessions:select', { name: session.name }),
              }),
            }
          : undefined
      }
    />
  )
}
