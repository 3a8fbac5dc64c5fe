import { Button, Tooltip } from 'antd'
import { CirclePause } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useSessionActions } from '@/lib/actions'
import { type AnnouncedEnd, hoursUntilTomorrow } from '@/lib/idle'
import { now } from '@/lib/now'
import { formatElapsed } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './Idle.module.css'

/** The countdown to an announced end. Screen readers are told of the end once, not every second. */
export function Countdown({ end, name }: { end: AnnouncedEnd; name?: string }) {
  const { t } = useTranslation()
  const left = end.at - useNow()
  const time = formatElapsed(left)
  return (
    <span className="num" role="timer" aria-live="off">
      {left < 1000
        ? t(name ? 'reclaim.titleNow' : 'reclaim.now', { name })
        : t(name ? 'reclaim.title' : 'reclaim.in', { name, time })}
    </span>
  )
}

/** Why a session is about to be reclaimed. */
export function useEndReason(): (end: AnnouncedEnd) => string {
  const { t } = useTranslation()
  return (end) => t(`reclaim.${end.checker as 'lifetime'}`, { defaultValue: '' })
}

interface ReclaimButtonsProps {
  /** Api Sessions fit. */
  sessions: readonly { id: string; type: string }[]
  /** No image can be made of them. */
  noImage: boolean
}

/** What a person can do about the announced end of sessions. */
export function ReclaimButtons({ sessions, noImage }: ReclaimButtonsProps) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  const [first, ...others] = sessions
  const alone = !noImage && others.length === 0 && first?.type === 'interactive' ? first.id : undefined
  const keep = (hours: number) =>
    actions.keep(
      sessions.map((s) => s.id),
      hours,
    )
  return (
    <span className={css.reclaim}>
      {t('reclaim.keep')}
      {[1, 4].map((hours) => (
        <Button
          key={hours}
          size="small"
          type={hours === 1 ? 'primary' : 'default'}
          aria-label={`${t('idle.keep')} ${t('idle.keepShort', { count: hours })}`}
          onClick={() => keep(hours)}
        >
          {t('idle.keepShort', { count: hours })}
        </Button>
      ))}
      <Tooltip title={t('reclaim.keepTomorrow')}>
        <Button size="small" aria-label={t('reclaim.keepTomorrow')} onClick={() => keep(hoursUntilTomorrow(now()))}>
          {t('reclaim.tomorrow')}
        </Button>
      </Tooltip>
      {alone ? (
        <Tooltip title={t('reclaim.parkHint')}>
          <Button size="small" icon={<CirclePause size={14} />} onClick={() => actions.park([alone])}>
            {t('reclaim.park')}
          </Button>
        </Tooltip>
      ) : null}
    </span>
  )
}
