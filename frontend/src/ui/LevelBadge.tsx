import { Tooltip } from 'antd'
import { Binoculars, CircleSlash, Lock, ShieldCheck, Users, type LucideIcon } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import css from './LevelBadge.module.css'

const icons: Record<string, LucideIcon> = {
  hardware: ShieldCheck,
  hard: Lock,
  'per-process': Users,
  watched: Binoculars,
  none: CircleSlash,
}

interface LevelProps {
  /** hardware, hard, per-process, watched or none. */
  level: string
}

/** How a share of a device is kept to its promise: a word and a shape, the sentence on hover. */
export function LevelBadge({ level }: LevelProps) {
  const { t } = useTranslation()
  const Icon = icons[level] ?? CircleSlash
  return (
    <Tooltip title={t(`level.${level as 'hard'}Text`, { defaultValue: '' })}>
      <span className={`${css.badge} ${level === 'none' ? css.weak : ''}`} data-level={level} tabIndex={0}>
        <Icon size={13} aria-hidden />
        {t(`level.${level as 'hard'}`, { defaultValue: level })}
      </span>
    </Tooltip>
  )
}

/** The same at length. A whole device needs no means: nobody else is given a part of it. */
export function LevelText({ level, whole = false }: LevelProps & { whole?: boolean }) {
  const { t } = useTranslation()
  const Icon = whole ? Lock : (icons[level] ?? CircleSlash)
  const shown = whole ? 'whole' : level
  return (
    <span className={css.text} data-level={shown}>
      <Icon size={14} aria-hidden />
      <span>
        <b>{t(`level.${shown as 'hard'}`, { defaultValue: shown })}.</b>{' '}
        {t(`level.${shown as 'hard'}Text`, { defaultValue: '' })}
      </span>
    </span>
  )
}
