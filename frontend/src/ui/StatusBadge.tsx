import { Tooltip } from 'antd'
import {
  Ban,
  Circle,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CircleX,
  LoaderCircle,
  Play,
  type LucideIcon,
} from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { statusFamily, type StatusFamily } from '@/lib/status'
import css from './StatusBadge.module.css'

const icons: Record<StatusFamily, LucideIcon> = {
  waiting: CircleDashed,
  preparing: LoaderCircle,
  running: Play,
  ending: LoaderCircle,
  ended: CircleCheck,
  cancelled: Ban,
  failed: CircleX,
  unknown: CircleHelp,
}

interface StatusBadgeProps {
  status: string
  /** It ended, and not in success. */
  failed?: boolean | undefined
  /** Shown when the pointer rests on the badge. */
  title?: string
  /** Words in place of the status. */
  text?: string | undefined
}

/** A status as a word, a shape and a colour. */
export function StatusBadge({ status, failed = false, title, text }: StatusBadgeProps) {
  const { t } = useTranslation()
  const family = statusFamily(status)
  const Icon = (failed && family === 'ended' ? CircleX : icons[family]) ?? Circle
  const badge = (
    <span className={`${css.badge} ${css[family]}`} data-status={status}>
      <Icon size={13} strokeWidth={2.25} aria-hidden className={css.icon} />
      {text ?? t(`status.${status as 'RUNNING'}`, { defaultValue: status })}
    </span>
  )
  return title ? <Tooltip title={title}>{badge}</Tooltip> : badge
}
