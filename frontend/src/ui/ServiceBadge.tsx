import {
  Circle,
  CircleCheck,
  CircleDashed,
  CircleX,
  LoaderCircle,
  type LucideIcon,
  Moon,
  TriangleAlert,
} from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { replicaTone, type Tone, toneOf } from '@/lib/serviceState'
import css from './ServiceBadge.module.css'

const icons: Record<Tone, LucideIcon> = {
  good: CircleCheck,
  part: TriangleAlert,
  bad: CircleX,
  busy: LoaderCircle,
  off: Circle,
}

const own: Partial<Record<string, LucideIcon>> = {
  ASLEEP: Moon,
  UPDATING: LoaderCircle,
  STOPPING: LoaderCircle,
  waiting: CircleDashed,
  draining: LoaderCircle,
}

function Badge({ state, tone, text }: { state: string; tone: Tone; text: string }) {
  const Icon = own[state] ?? icons[tone]
  return (
    <span className={`${css.badge} ${css[tone]}`} data-state={state}>
      <Icon size={13} strokeWidth={2.25} aria-hidden className={Icon === LoaderCircle ? css.turn : undefined} />
      {text}
    </span>
  )
}

/** The state of a service as a word, a shape and a colour. */
export function ServiceBadge({ state }: { state: string }) {
  const { t } = useTranslation('services')
  return <Badge state={state} tone={toneOf(state)} text={t(`state.${state as 'READY'}`, { defaultValue: state })} />
}

export function ReplicaBadge({ state }: { state: string }) {
  const { t } = useTranslation('services')
  return (
    <Badge
      state={state}
      tone={replicaTone(state)}
      text={t(`replicaState.${state as 'healthy'}`, { defaultValue: state })}
    />
  )
}
