import { Button } from 'antd'
import { TriangleAlert, X } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useIsMine, useSessionBook } from '@/api/hooks'
import { useLacks } from '@/api/useLacks'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { type AnnouncedEnd, announcedEnd } from '@/lib/idle'
import { useSteady } from '@/lib/steady'
import { useNow } from '@/lib/useNow'
import { Countdown, ReclaimButtons, useEndReason } from '@/ui/Reclaim'
import { nameOf } from './launches'
import css from './notifications.module.css'

/** Sessions of one launch that a check is about to reclaim, and when it reclaims the first. */
interface Ending {
  key: string
  sessions: Session[]
  end: AnnouncedEnd
}

/** How long before an end a warning that was dismissed comes back, in ms. */
const lastCall = 60_000

/** The person's own sessions that are about to be reclaimed, the first to end first. */
export function useEnding(): Ending[] {
  const book = useSessionBook().data ?? {}
  const isMine = useIsMine()
  const found = Object.values(book)
    .flatMap((session) => {
      const end = announcedEnd(session)
      return end && isMine(session) ? [{ session, end }] : []
    })
    .sort((a, b) => a.end.at - b.end.at)
  const all = new Map<string, Ending>()
  for (const { session, end } of found) {
    const key = `${session.launch || session.id} ${end.checker}`
    const known = all.get(key)
    if (known) known.sessions.push(session)
    else all.set(key, { key, sessions: [session], end })
  }
  return [...all.values()]
}

/** Warnings of ends with their countdowns. They are never collapsed: who misses one loses a session. */
export function ReclaimCards({ ending }: { ending: readonly Ending[] }) {
  const [dismissed, setDismissed] = useState<readonly string[]>([])
  const now = useSteady(useNow(ending.length > 0))
  return ending.map((one) => {
    const key = `${one.key} ${one.end.at - now > lastCall ? 'early' : 'last'}`
    return dismissed.includes(key) ? null : (
      <Card key={one.key} sessions={one.sessions} end={one.end} onDismiss={() => setDismissed([...dismissed, key])} />
    )
  })
}

function Card({ sessions, end, onDismiss }: Omit<Ending, 'key'> & { onDismiss: () => void }) {
  const { t } = useTranslation(['notifications', 'common'])
  const actions = useSessionActions()
  const reason = useEndReason()(end)
  const [first] = sessions
  const noImage = useLacks()(first?.agent ?? '', 'commit') !== ''
  const count = sessions.length
  const name = count > 1 ? t('notifications:several', { name: nameOf(sessions), count }) : nameOf(sessions)
  return (
    <div className={`${css.row} ${css.warning}`} role="alert" data-reclaim={first?.id}>
      <TriangleAlert size={16} aria-hidden className={css.warnSign} />
      <div className={css.words}>
        <button type="button" className={css.name} onClick={() => first && actions.showDetail(first.id)}>
          <Countdown end={end} name={name} />
        </button>
        <span className={css.text}>
          {reason} {t('common:reclaim.loss')}
        </span>
      </div>
      <ReclaimButtons sessions={sessions} noImage={noImage} />
      <Button
        type="text"
        size="small"
        className={css.rowEnd ?? ''}
        aria-label={t('notifications:dismiss', { name })}
        icon={<X size={14} />}
        onClick={onDismiss}
      />
    </div>
  )
}
