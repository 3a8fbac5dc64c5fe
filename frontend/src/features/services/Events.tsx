import {
  CircleCheck,
  CircleX,
  type LucideIcon,
  Moon,
  Play,
  RefreshCw,
  ScrollText,
  Square,
  TriangleAlert,
  Undo2,
  History,
  UnfoldVertical,
} from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import type { Service } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'
import { EmptyState } from '@/ui/EmptyState'
import { RelativeTime } from '@/ui/Times'
import css from './services.module.css'
import type { Tone } from '@/lib/serviceState'

const looks: Partial<Record<string, [LucideIcon, Tone]>> = {
  update: [RefreshCw, 'busy'],
  updated: [CircleCheck, 'good'],
  'rolled-back': [Undo2, 'bad'],
  launched: [Play, 'off'],
  ended: [Square, 'off'],
  failure: [CircleX, 'bad'],
  scaled: [UnfoldVertical, 'busy'],
  asleep: [Moon, 'off'],
  woken: [Play, 'busy'],
  started: [Play, 'busy'],
  ready: [CircleCheck, 'good'],
  degraded: [TriangleAlert, 'part'],
  unreachable: [CircleX, 'bad'],
  failed: [CircleX, 'bad'],
  stopped: [Square, 'off'],
}
const other: [LucideIcon, Tone] = [History, 'off']

/** How many events an agent stores of a service. */
const KEPT = 50

/** What happened to a service and why, newest first. */
export function Events({ service }: { service: Service }) {
  const { t } = useTranslation('services')
  const events = service.events ?? []
  if (events.length === 0) return <EmptyState icon={History} title={t('event.none')} text={t('event.noneText')} />
  return (
    <div className={css.parts}>
      <ol className={css.events} aria-label={t('view.events')}>
        {events.map((event, i) => {
          const [Icon, tone] = looks[event.kind] ?? other
          return (
            <li key={`${event.at}/${events.length - i}`} className={css.event}>
              <span className={`${css.badge} ${css[tone]}`}>
                <Icon size={14} aria-hidden />
              </span>
              <div className={css.words}>
                {messageText(event)}
                {event.why ? (
                  <div className={css.small}>{messageText({ message: event.why, said: event.because })}</div>
                ) : null}
              </div>
              {event.session ? (
                <Link className={css.iconLink} to={`/sessions/${event.session}?view=logs`}>
                  <ScrollText size={14} aria-hidden />
                  {t('replica.log')}
                </Link>
              ) : null}
              <span className={css.dim}>
                <RelativeTime at={event.at} />
              </span>
            </li>
          )
        })}
      </ol>
      {events.length >= KEPT ? <p className={css.small}>{t('event.bound')}</p> : null}
    </div>
  )
}
