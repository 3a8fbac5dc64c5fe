import { Tooltip } from 'antd'
import { formatElapsed, formatExact, formatRelative, formatShortRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'

/**
 * A moment as seen from now, the exact one on hover; short, for a narrow column, in figures. It has passed, unless it
 * is said to lie ahead.
 */
export function RelativeTime({ at, short = false, ahead = false }: { at: string; short?: boolean; ahead?: boolean }) {
  const now = useNow()
  const moment = ahead ? at : past(at, now)
  return (
    <Tooltip title={formatExact(at)}>
      <time dateTime={at} style={{ whiteSpace: 'nowrap' }}>
        {short ? formatShortRelative(moment, now) : formatRelative(moment, now)}
      </time>
    </Tooltip>
  )
}

/** The time between two moments in its largest units. It ticks while there is no end. */
export function Elapsed({ from, to }: { from: string; to?: string | undefined }) {
  const now = useNow(!to)
  const end = to ? Date.parse(to) : now
  return (
    <span className="num" style={{ whiteSpace: 'nowrap' }}>
      {formatElapsed(end - Date.parse(from))}
    </span>
  )
}
