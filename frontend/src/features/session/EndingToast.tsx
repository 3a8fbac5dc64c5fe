import { Button } from 'antd'
import { CirclePower, CircleX } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useSessionBook } from '@/api/hooks'
import type { Ending, Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { hintText, messageText } from '@/lib/phrases'
import { useSecondsUntil } from '@/lib/seconds'
import css from './EndingToast.module.css'

interface Ends extends Session {
  ending: Ending
}

const ends = (session: Session): session is Ends => session.ending !== undefined

/** What is about to be terminated, on every page, with a way back. */
function Waiting({ sessions, first }: { sessions: Ends[]; first: Ends }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  const seconds = useSecondsUntil(first.ending.at)
  const ids = sessions.map((session) => session.id)
  const count = sessions.length
  const soon = count === 1 ? t('ending.soonName', { name: first.name }) : t('ending.soon', { count })
  const text = count === 1 ? t('ending.manyName', { name: first.name, seconds }) : t('ending.many', { count, seconds })
  return (
    <section className={css.card} aria-label={t('ending.label')}>
      <CirclePower size={16} aria-hidden />
      <span className="unseen" role="status">
        {soon}
      </span>
      <span className={css.text} aria-hidden>
        {seconds > 0 ? text : soon}
      </span>
      <Button size="small" type="primary" disabled={seconds === 0} onClick={() => actions.undoTerminate(ids)}>
        {t('ending.undo')}
      </Button>
      <Button size="small" disabled={seconds === 0} onClick={() => actions.terminateNow(ids)}>
        {t('ending.atOnce')}
      </Button>
    </section>
  )
}

function Failed({ session }: { session: Ends }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  return (
    <div className={`${css.card} ${css.bad}`} role="alert">
      <CircleX size={16} aria-hidden />
      <span className={css.text}>
        <b>{t('ending.failedName', { name: session.name })}</b> {messageText(session.ending.error ?? {})}{' '}
        {hintText(session.ending.error ?? {})}
      </span>
      <Button size="small" onClick={() => actions.terminateNow([session.id])}>
        {t('action.retry')}
      </Button>
      <Button size="small" type="text" onClick={() => actions.undoTerminate([session.id])}>
        {t('ending.dismiss')}
      </Button>
    </div>
  )
}

const failuresShown = 3

export function EndingToast() {
  const all = Object.values(useSessionBook().data ?? {}).filter(ends)
  const waiting = all
    .filter((session) => !session.ending.error)
    .sort((a, b) => Date.parse(a.ending.at) - Date.parse(b.ending.at))
  const failed = all.filter((session) => session.ending.error).slice(0, failuresShown)
  const first = waiting[0]
  if (all.length === 0) return null
  return (
    <div className={css.stack}>
      {failed.map((session) => (
        <Failed key={session.id} session={session} />
      ))}
      {first ? <Waiting key={first.ending.at} sessions={waiting} first={first} /> : null}
    </div>
  )
}
