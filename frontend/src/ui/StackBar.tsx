import { Tooltip } from 'antd'
import css from './StackBar.module.css'

export interface StackPart {
  key: string
  /** What it is and how much, shown on hover and read out. */
  label: string
  value: number
  /** A CSS colour. */
  colour: string
  /** Drawn hatched: not a session's. */
  hatched?: boolean
  /** Drawn as an outline: not there yet. */
  ghost?: boolean
}

interface StackBarProps {
  label: string
  parts: readonly StackPart[]
  total: number
  height?: number
}

/** Parts of a whole side by side; what they leave is free. */
export function StackBar({ label, parts, total, height = 10 }: StackBarProps) {
  const sum = Math.max(
    total,
    parts.reduce((all, part) => all + part.value, 0),
  )
  return (
    <div
      className={css.bar}
      style={{ height }}
      role="img"
      aria-label={[label, ...parts.map((p) => p.label)].join(', ')}
    >
      {parts
        .filter((part) => part.value > 0)
        .map((part) => (
          <Tooltip key={part.key} title={part.label}>
            <i
              className={`${css.part} ${part.hatched ? css.hatched : ''} ${part.ghost ? css.ghost : ''}`}
              data-part={part.key}
              style={{ width: `${sum > 0 ? (part.value / sum) * 100 : 0}%`, ['--part' as string]: part.colour }}
            />
          </Tooltip>
        ))}
    </div>
  )
}
