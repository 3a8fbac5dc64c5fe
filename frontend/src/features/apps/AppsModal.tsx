import { App as AntApp, Skeleton } from 'antd'
import { Blocks, KeyRound, SquareTerminal } from 'lucide-react'
import { type ReactNode, useCallback } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useSession } from '@/api/hooks'
import type { App } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { isLive } from '@/lib/status'
import { Dialog } from '@/ui/Dialog'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import css from './apps.module.css'
import { sortApps } from './appOrder'
import { AppTile } from './AppTile'
import { useApps } from './useApps'

export interface AppsModalProps {
  sessionId: string
  onClose: () => void
}

/** What a session can serve, and the button that opens it. It stays open, so that several can be opened. */
export function AppsModal({ sessionId, onClose }: AppsModalProps) {
  const { t } = useTranslation('apps')
  const { session, query } = useSession(sessionId)
  return (
    <Dialog
      title={session ? t('titleOf', { name: session.name }) : t('title')}
      width={600}
      footer={null}
      onCancel={onClose}
    >
      <div className={css.body}>
        {session?.status === 'RUNNING' ? (
          <Tiles sessionId={sessionId} ssh={!session.spec.noSSH} onClose={onClose} />
        ) : session ? (
          <EmptyState
            icon={Blocks}
            title={t(isLive(session.status) ? 'waitingTitle' : 'endedTitle')}
            text={t(isLive(session.status) ? 'waitingText' : 'endedText')}
          />
        ) : query.error ? (
          <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
        ) : (
          <Skeleton active />
        )}
      </div>
    </Dialog>
  )
}

function Tiles({ sessionId, ssh, onClose }: AppsModalProps & { ssh: boolean }) {
  const { t } = useTranslation('apps')
  const actions = useSessionActions()
  const { message } = AntApp.useApp()
  const onInstead = useCallback(
    (app: App) => void message.info(t('door.instead', { title: app.title, port: app.door?.port })),
    [message, t],
  )
  const { query, open, stop, shut, deedOf } = useApps(sessionId, true, onInstead)
  const tile = (app: App) => (
    <AppTile
      key={app.id}
      app={app}
      deed={deedOf(app.id)}
      onOpen={(wish) => void open(app, t('tabText', { title: app.title }), wish)}
      onStop={() => stop.mutate(app)}
      onShut={() => shut.mutate(app)}
    />
  )
  const { apps, ports } = sortApps(query.data ?? [])
  return (
    <>
      <Section title={t('apps')}>
        <div className={css.tile} data-app="terminal">
          <button
            type="button"
            className={css.open}
            onClick={() => {
              onClose()
              actions.openTerminal(sessionId)
            }}
          >
            <span className={css.icon}>
              <SquareTerminal size={20} strokeWidth={1.75} aria-hidden />
            </span>
            <span className={css.words}>
              <span className={css.name}>{t('terminal')}</span>
              <span className={css.state}>{t('terminalText')}</span>
            </span>
          </button>
        </div>
        {ssh ? (
          <div className={css.tile} data-app="ssh">
            <button type="button" className={css.open} onClick={() => actions.openSSH(sessionId)}>
              <span className={css.icon}>
                <KeyRound size={20} strokeWidth={1.75} aria-hidden />
              </span>
              <span className={css.words}>
                <span className={css.name}>{t('ssh.title')}</span>
                <span className={css.state}>{t('ssh.text')}</span>
              </span>
            </button>
          </div>
        ) : null}
        {query.isPending ? <Skeleton.Button active block style={{ height: 58 }} /> : apps.map(tile)}
      </Section>
      {query.isError ? (
        <ErrorState compact problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : null}
      {query.isSuccess && apps.length === 0 ? <p className={css.none}>{t('none')}</p> : null}
      {ports.length > 0 ? <Section title={t('ports')}>{ports.map(tile)}</Section> : null}
    </>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className={css.section}>{title}</h2>
      <div className={css.tiles}>{children}</div>
    </section>
  )
}
