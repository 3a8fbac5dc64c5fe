import { CircleCheck, CircleHelp, CircleSlash, LoaderCircle, Unplug, type LucideIcon } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { connectionTone, type ConnectionTone } from '@/lib/connection'
import css from './ConnectionBadge.module.css'

const icons: Record<ConnectionTone, LucideIcon> = {
  good: CircleCheck,
  busy: LoaderCircle,
  bad: Unplug,
  asks: CircleHelp,
  off: CircleSlash,
}

/** How an agent is reached, as a word, a shape and a colour. */
export function ConnectionBadge({ state }: { state: string }) {
  const { t } = useTranslation()
  const tone = connectionTone(state)
  const Icon = icons[tone]
  return (
    <span className={`${css.badge} ${css[tone]}`} data-connection={state}>
      <Icon size={13} strokeWidth={2.25} aria-hidden className={css.icon} />
      {t(`reach.${state as 'connected'}`, { defaultValue: state })}
    </span>
  )
}
