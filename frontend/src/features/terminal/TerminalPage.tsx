import { App, Button, Tooltip } from 'antd'
import { ArrowLeft, Blocks, ExternalLink, SquareTerminal, Unplug } from 'lucide-react'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useParams, useSearchParams } from 'react-router'

import { asProblem, call } from '@/api/client'
import { useSession } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { useStartOperation } from '@/api/useOperation'
import { useSessionActions } from '@/lib/actions'
import { isLive } from '@/lib/status'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { StatusBadge } from '@/ui/StatusBadge'
import { RelativeTime } from '@/ui/Times'
import { WaitReason } from '@/ui/WaitReason'
import css from './terminal.module.css'
import { Shells } from './Shells'

/** The shells of one session: in the application, or with ?window=1 in a window of their own. */
export function TerminalPage() {
  const { t } = useTranslation('terminal')
  const { id = '' } = useParams()
  const [params] = useSearchParams()
  const { session, query } = useSession(id)
  const alone = params.get('window') === '1'

  useEffect(() => {
    if (!session) return
    const before = document.title
    document.title = `${session.name} – ${t('title')}`
    return () => {
      document.title = before
    }
  }, [session, t])

  if (!session) {
    return query.isError ? (
      <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
    ) : (
      <div className={css.waiting} aria-busy />
    )
  }
  return (
    <div className={css.page}>
      <Top session={session} alone={alone} />
      {session.lastHeard && isLive(session.status) ? <Unheard agent={session.agent} at={session.lastHeard} /> : null}
      <Body key={session.id} session={session} />
    </div>
  )
}

function Top({ session, alone }: { session: Session; alone: boolean }) {
  const { t } = useTranslation('terminal')
  const actions = useSessionActions()
  const { message } = App.useApp()
  const openWindow = () => {
    const query = new URLSearchParams(location.search)
    query.set('window', '1')
    const opened = window.open(
      `${location.pathname}?${query.toString()}`,
      `slipway-terminal-${session.id}`,
      'popup,width=1000,height=680',
    )
    if (!opened) message.info(t('windowRefused'))
  }
  return (
    <div className={css.top}>
      {alone ? null : (
        <Link to={`/sessions/${session.id}`} className={css.back} aria-label={t('back')}>
          <ArrowLeft size={16} aria-hidden />
        </Link>
      )}
      <SquareTerminal size={16} aria-hidden className={css.quiet} />
      <h1 className={css.name}>{session.name}</h1>
      <span className={session.lastHeard && isLive(session.status) ? css.asThen : undefined}>
        <StatusBadge status={session.status} />
      </span>
      <div className={css.tools}>
        <Button
          type="text"
          icon={<Blocks size={15} />}
          disabled={session.status !== 'RUNNING'}
          onClick={() => actions.openApps(session.id)}
        >
          {t('apps')}
        </Button>
        {alone ? null : (
          <Tooltip title={t('ownWindow')}>
            <Button type="text" aria-label={t('ownWindow')} icon={<ExternalLink size={15} />} onClick={openWindow} />
          </Tooltip>
        )}
      </div>
    </div>
  )
}

/** The machine of the session is not reached: what is typed waits for it. */
function Unheard({ agent, at }: { agent: string; at: string }) {
  const { t } = useTranslation('terminal')
  const start = useStartOperation()
  return (
    <div className={css.unheard} role="status">
      <Unplug size={14} aria-hidden />
      <span>
        <b>{t('unheard', { agent })}</b> {t('unheardSince')} <RelativeTime at={at} />. {t('unheardText')}
      </span>
      <Button size="small" onClick={() => void start(() => call('agent-reconnect', { path: { agent } }))}>
        {t('unheardRetry')}
      </Button>
    </div>
  )
}

function Body({ session }: { session: Session }) {
  const { t } = useTranslation('terminal')
  const actions = useSessionActions()
  const running = session.status === 'RUNNING'
  // Shells that are open stay readable when the session ends.
  return (
    <Shells
      session={session.id}
      running={running}
      otherwise={
        isLive(session.status) ? (
          <EmptyState
            icon={SquareTerminal}
            title={t('waitingTitle')}
            text={session.wait ? <WaitReason wait={session.wait} machine={session.agent} /> : t('waitingText')}
          />
        ) : (
          <EmptyState icon={SquareTerminal} title={t('endedTitle')} text={t('endedText')}>
            <Button onClick={() => actions.showLogs(session.id)}>{t('showLogs')}</Button>
          </EmptyState>
        )
      }
    />
  )
}
