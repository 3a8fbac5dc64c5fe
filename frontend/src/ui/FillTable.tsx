import { Table, type TableProps } from 'antd'
import { useRef } from 'react'
import { useBox } from '@/lib/useBox'
import css from './FillTable.module.css'

const headHeight = 40

export interface FillTableProps<Row> extends Omit<TableProps<Row>, 'virtual' | 'size' | 'pagination' | 'scroll' | 'className'> {
  /** The width below which it scrolls sideways. */
  least: number
  /** The look of what is in it. */
  className?: string | undefined
}

/** A table that fills what is left of a column and keeps its header. Only what is seen is drawn, so thousands of rows cost as much as twenty. */
export function FillTable<Row extends object>({ least, className = '', ...table }: FillTableProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const box = useBox(frame)
  return (
    <div ref={frame} className={`${css.table} ${className}`}>
      {box.height > 0 ? <Table<Row> {...table} virtual size="middle" pagination={false} scroll={{ x: Math.max(least, box.width), y: box.height - headHeight }} /> : null}
    </div>
  )
}
