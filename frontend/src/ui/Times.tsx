import { Tooltip } from 'antd'
import { formatElapsed, formatExact, formatRelative, formatShortRelative } from '@/lib/time'
import { useNow } from '@/lib/useNow'

/** A moment as seen from now, the exact one on hover; short, for a narrow column, in figures. */
export function RelativeTime({ at, short = false }: { at: string; short?: boolean }) {
  const now = useNow()
  return (
    <Tooltip title={formatExact(at)}>
      <time dateTime={at} style={{ whiteSpace: 'nowrap' }}>
        {short ? formatShortRelative(at, now) : formatRelative(at, now)}
      </time>
    </Tooltip>
  )
}

/** The time between two moments as a clock; it ticks while there is no end. */
export function Elapsed({ from, to }: { from: string; to?: string | undefined }) {
  const now = useNow(!to)
  const end = to ? Date.parse(to) : now
  return <span className="num" style={{ whiteSpace: 'nowrap' }}>{formatElapsed(end - Date.parse(from))}</span>
}
