import { Tooltip } from 'antd'
import css from './folders.module.css'

/** A word about a folder, and at length on hover. */
export function Mark({ text, title, bad }: { text: string; title?: string; bad?: boolean }) {
  return (
    <Tooltip title={title}>
      <span className={`${css.mark} ${bad ? css.bad : ''}`}>{text}</span>
    </Tooltip>
  )
}
