import { Button } from 'antd'
import { CircleAlert, CircleCheck, LoaderCircle, X } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { useSessionBook } from '@/api/hooks'
import { forgetOpening, type Opening, useOpenings } from '@/api/openings'
import { useSessionActions } from '@/lib/actions'
import { useSteady } from '@/lib/steady'
import { formatElapsed } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { CopyButton } from '@/ui/CopyButton'
import css from './notifications.module.css'

/**
 * Apps that are being opened, or could not be. The dialog of their session shows the same, so they are not shown
 * beside it.
 */
export function OpeningCards() {
  const openings = useSteady(useOpenings())
  const dialog = useSearchParams()[0].get('apps')
  return openings.filter((o) => o.session !== dialog).map((o) => <Card key={`${o.session} ${o.app}`} opening={o} />)
}

function Card({ opening }: { opening: Opening }) {
  const { t } = useTranslation('notifications')
  const actions = useSessionActions()
  const session = useSessionBook().data?.[opening.session]
  const { problem, blocked, title } = opening
  return (
    <div className={css.row} data-opening={opening.app} role={problem ? 'alert' : 'status'}>
      <Sign opening={opening} />
      <span className={css.title}>{title}</span>
      {session ? (
        <button type="button" className={css.where} onClick={() => actions.openApps(opening.session)}>
          {session.name}
        </button>
      ) : null}
      {problem ? (
        <div className={css.why}>
          <span>
            {problem.message}
            {problem.hint ? <span className={css.hint}>{problem.hint}</span> : null}
          </span>
          <CopyButton
            text={[problem.message, problem.hint, problem.code].filter(Boolean).join('\n')}
            label={t('copyWhy')}
          />
        </div>
      ) : (
        <div className={css.said}>
          {blocked ? <Blocked address={blocked} unasked={opening.unasked} /> : <Progress opening={opening} />}
        </div>
      )}
      {opening.since === null ? null : (
        <Button
          size="small"
          aria-label={t('giveUpApp', { title })}
          disabled={!opening.giveUp}
          onClick={() => opening.giveUp?.()}
        >
          {t('giveUp')}
        </Button>
      )}
      <Button
        type="text"
        size="small"
        className={css.rowEnd ?? ''}
        aria-label={t('dismissApp', { title })}
        icon={<X size={14} />}
        onClick={() => forgetOpening(opening.session, opening.app)}
      />
    </div>
  )
}

function Sign({ opening }: { opening: Opening }) {
  if (opening.problem) return <CircleAlert size={14} className={css.failed} aria-hidden />
  if (opening.since !== null) return <LoaderCircle size={14} className={css.running} aria-hidden />
  return <CircleCheck size={14} className={css.done} aria-hidden />
}

function Progress({ opening }: { opening: Opening }) {
  const { t } = useTranslation('notifications')
  const now = useNow(opening.since !== null)
  return opening.since === null
    ? t('appReady')
    : t('appStarting', { time: formatElapsed(Math.max(0, now - opening.since)) })
}

function Blocked({ address, unasked }: { address: string; unasked: boolean | undefined }) {
  const { t } = useTranslation('notifications')
  return (
    <>
      {t(unasked ? 'appReadyNow' : 'blocked')}{' '}
      <a href={address} target="_blank" rel="noopener">
        {t('openHere')}
      </a>
    </>
  )
}
