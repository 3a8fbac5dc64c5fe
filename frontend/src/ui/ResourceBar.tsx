import css from './ResourceBar.module.css'

interface ResourceBarProps {
  /** For the screen reader: "Memory: 3.1 GiB of 16 GiB promised". */
  label: string
  /** What is promised or granted, between 0 and total. */
  promised: number
  /** What is really used at this moment; a mark on the bar. */
  load?: number
  total: number
}

const percent = (part: number, total: number) => (total > 0 ? Math.min(100, Math.max(0, (part / total) * 100)) : 0)

/** One bar: how much of a resource is promised, with a mark for what is really used. */
export function ResourceBar({ label, promised, load, total }: ResourceBarProps) {
  return (
    <div className={css.bar} role="img" aria-label={label}>
      <div className={css.promised} style={{ width: `${percent(promised, total)}%` }} />
      {load === undefined ? null : <div className={css.load} style={{ width: `${percent(load, total)}%` }} />}
    </div>
  )
}
