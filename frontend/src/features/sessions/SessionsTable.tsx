import { Table, type TableProps } from 'antd'
import { useMemo, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { useBox } from '@/lib/useBox'
import { type ColumnKey, makeColumns } from './columns'
import type { Sort } from './listState'
import type { SortKey } from './order'
import css from './SessionsPage.module.css'

export interface SessionsTableProps {
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

const headHeight = 40
const checkWidth = 40

/** The virtual table: only what is seen is drawn, so thousands of rows cost as much as twenty. */
export function SessionsTable(props: SessionsTableProps) {
  const { rows, shown, sort, onSort, selected, onSelect, selectable, openId, onOpen } = props
  const { t } = useTranslation(['sessions', 'common'])
  const frame = useRef<HTMLDivElement>(null)
  const box = useBox(frame)
  const { columns, width } = useMemo(() => makeColumns(shown, sort, t), [shown, sort, t])
  const change: TableProps<Session>['onChange'] = (_page, _filters, sorter) => {
    const one = Array.isArray(sorter) ? sorter[0] : sorter
    const key = one?.columnKey as SortKey | undefined
    // The third click on a header goes back to the newest first.
    onSort(key && one?.order ? { key, descending: one.order === 'descend' } : { key: 'created', descending: true })
  }
  return (
    <div ref={frame} className={css.table}>
      {box.height > 0 ? (
        <Table<Session>
          virtual
          rowKey="id"
          size="middle"
          pagination={false}
          dataSource={rows}
          columns={columns}
          scroll={{ x: Math.max(width + (selectable ? checkWidth : 0), box.width), y: box.height - headHeight }}
          onChange={change}
          rowClassName={(session) => `${session.id === openId ? css.open : ''} ${session.lastHeard && isLive(session.status) ? css.unheard : ''}`}
          onRow={(session) => ({ onClick: () => onOpen(session.id) })}
          rowSelection={
            selectable
              ? {
                  columnWidth: checkWidth,
                  selectedRowKeys: selected,
                  onChange: (keys) => onSelect(keys.map(String)),
                  preserveSelectedRowKeys: false,
                  getCheckboxProps: (session) => ({ disabled: !isLive(session.status), 'aria-label': t('sessions:select', { name: session.name }) }),
                }
              : undefined
          }
        />
      ) : null}
    </div>
  )
}
