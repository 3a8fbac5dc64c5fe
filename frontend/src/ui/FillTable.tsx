import { Table, type TableColumnType, type TableProps } from 'antd'
import { cloneElement, isValidElement, useMemo, useRef, type ReactNode } from 'react'
import { useBox } from '@/lib/useBox'
import css from './FillTable.module.css'

const headHeight = 40
const denseHeadHeight = 32

export type FillColumn<Row> = TableColumnType<Row> & {
  /** The least, in pixels. */
  width: number
  /**
   * The part of the width that is left over which it takes, against the parts of the others; what says nothing keeps
   * its width.
   */
  grow?: number
}

interface FillTableProps<Row> extends Omit<
  TableProps<Row>,
  'virtual' | 'size' | 'pagination' | 'scroll' | 'className' | 'columns'
> {
  columns: readonly FillColumn<Row>[]
  /** Rows are as low as their text allows. */
  dense?: boolean
  /** The look of what is in it. */
  className?: string | undefined
}

/** Gives what is left over to the columns that grow. */
export function spread<Row>(columns: readonly FillColumn<Row>[], spare: number): TableColumnType<Row>[] {
  const parts = columns.reduce((sum, { grow = 0 }) => sum + grow, 0)
  return columns.map(({ grow = 0, ...column }) => ({
    ...column,
    width: column.width + (parts > 0 ? Math.floor((Math.max(0, spare) * grow) / parts) : 0),
  }))
}

/** Names the box that selects a row, for renderCell: the table asks for its other properties of all rows at once. */
export const named = (box: ReactNode, name: string): ReactNode =>
  isValidElement<{ 'aria-label'?: string }>(box) ? cloneElement(box, { 'aria-label': name }) : box

/**
 * A table that fills what is left of a column and keeps its header. Only what is seen is drawn, so thousands of rows
 * cost as much as twenty.
 */
export function FillTable<Row extends object>({
  columns,
  dense = false,
  className = '',
  ...table
}: FillTableProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const box = useBox(frame)
  const least = columns.reduce((sum, { width }) => sum + width, Number(table.rowSelection?.columnWidth ?? 0))
  const spare = box.width - least
  const wide = useMemo(() => spread(columns, spare), [columns, spare])
  return (
    <div ref={frame} className={`${css.table} ${dense ? css.dense : ''} ${className}`}>
      {box.height > 0 ? (
        <Table<Row>
          {...table}
          columns={wide}
          virtual
          size={dense ? 'small' : 'middle'}
          pagination={false}
          scroll={{ x: Math.max(least, box.width), y: box.height - (dense ? denseHeadHeight : headHeight) }}
        />
      ) : null}
    </div>
  )
}
