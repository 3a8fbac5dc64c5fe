import { Button, Drawer, Dropdown, Skeleton, Tooltip } from 'antd'
import {
  CirclePower,
  Ellipsis,
  FolderOpen,
  KeyRound,
  LayoutGrid,
  MoveRight,
  PackagePlus,
  Rocket,
  SquareTerminal,
  X,
} from 'lucide-react'
import { Suspense, useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useSession } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { part } from '@/lib/lazily'
import { isContinuable, isParkable } from '@/api/parking'
import { isLive } from '@/lib/status'
import { ErrorState } from '@/ui/ErrorState'
import { StatusBadge } from '@/ui/StatusBadge'
import { Tabs } from '@/ui/Tabs'
import { useLacks } from '@/api/useLacks'
import { useWhy } from '@/ui/useWhy'
import { EditableName } from './EditableName'
import { EditableTags } from './EditableTags'
import { Overview } from './Overview'
import css from './SessionDrawer.module.css'

const LogsView = part(() => import('./LogsView'), 'LogsView')
const HistoryView = part(() => import('./HistoryView'), 'HistoryView')

const views = ['overview', 'logs', 'history'] as const
type View = (typeof views)[number]

function useView(): [View, (view: View) => void] {
  const [params, setParams] = useSearchParams()
  const asked = params.get('view') as View
  const set = (view: View) =>
    setParams(
      (old) => {
        const next = new URLSearchParams(old)
        if (view === 'overview') next.delete('view')
        else next.set('view', view)
        return next
      },
      { replace: true },
    )
  return [views.includes(asked) ? asked : 'overview', set]
}

function Buttons({ session, onForce, onAgain }: { session: Session; onForce: () => void; onAgain: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useSessionActions()
  const running = session.status === 'RUNNING' && !session.lastHeard
  const system = session.type === 'system'
  // Its service launches a replica again, when it wants one.
  const single = !system && session.type !== 'inference'
  const noImage = useLacks()(session.agent, 'commit')
  if (!isLive(session.status)) {
    return !single ? null : (
      <div className={css.buttons}>
        <Button icon={<Rocket size={14} />} onClick={onAgain}>
          {t('session:action.again')}
        </Button>
        {isContinuable(session) ? (
          <Button icon={<MoveRight size={14} />} onClick={() => actions.move(session.id)}>
            {t('session:action.move')}
          </Button>
        ) : null}
      </div>
    )
  }
  return (
    <div className={css.buttons}>
      {system ? null : (
        <>
          <Button
            type="primary"
            disabled={!running}
            icon={<LayoutGrid size={15} />}
            onClick={() => actions.openApps(session.id)}
          >
            {t('common:action.apps')}
          </Button>
          <Button
            disabled={!running}
            icon={<SquareTerminal size={15} />}
            onClick={() => actions.openTerminal(session.id)}
          >
            {t('common:action.terminal')}
          </Button>
        </>
      )}
      <Button disabled={!running} icon={<FolderOpen size={15} />} onClick={() => actions.openFiles(session.id)}>
        {t('common:action.files')}
      </Button>
      {session.spec.noSSH ? null : (
        <Button disabled={!running} icon={<KeyRound size={15} />} onClick={() => actions.openSSH(session.id)}>
          {t(system ? 'common:action.sftp' : 'session:action.ssh')}
        </Button>
      )}
      {session.spec.type === 'interactive' ? (
        <Tooltip title={noImage}>
          <Button
            disabled={!running || noImage !== ''}
            icon={<PackagePlus size={15} />}
            onClick={() => actions.commit(session.id)}
          >
            {t('session:action.commit')}
          </Button>
        </Tooltip>
      ) : null}
      <Button
        danger
        disabled={session.status === 'TERMINATING' || Boolean(session.ending ?? session.lastHeard)}
        className={css.buttonsEnd ?? ''}
        icon={<CirclePower size={15} />}
        onClick={() => actions.terminate([session.id])}
      >
        {t('common:action.terminate')}
      </Button>
      <Dropdown
        trigger={['click']}
        menu={{
          items: [
            ...(isParkable(session)
              ? [
                  {
                    key: 'move',
                    label: t('session:action.move'),
                    disabled: noImage !== '',
                    title: noImage,
                    onClick: () => actions.move(session.id),
                  },
                ]
              : []),
            ...(!single
              ? []
              : [{ key: 'again', label: t('session:action.again'), onClick: onAgain }, { type: 'divider' as const }]),
            { key: 'force', danger: true, label: t('session:action.force'), onClick: onForce },
          ],
        }}
      >
        <Button aria-label={t('session:action.more')} icon={<Ellipsis size={15} />} />
      </Dropdown>
    </div>
  )
}

function Content({
  session,
  onClose,
  onAgain,
}: {
  session: Session
  onClose: () => void
  onAgain: (session: Session) => void
}) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useSessionActions()
  // While it lives, the overview says at length why it stands where it stands.
  const reason = useWhy()(session)
  const why = isLive(session.status) ? '' : reason
  const [view, setView] = useView()
  return (
    <div className={css.frame}>
      <div className={css.head}>
        <div className={css.top}>
          <div className={css.titles}>
            <EditableName key={session.id} session={session} />
            <div className={css.line}>
              <div className={css.sub}>
                <StatusBadge status={session.status} failed={session.result === 'failure'} />
                {why ? (
                  <Tooltip title={why} mouseEnterDelay={0.4}>
                    <span className={css.why}>{why}</span>
                  </Tooltip>
                ) : null}
              </div>
              <EditableTags key={`tags-${session.id}`} session={session} />
            </div>
          </div>
          <Button type="text" aria-label={t('common:action.close')} icon={<X size={16} />} onClick={onClose} />
        </div>
        <Buttons
          session={session}
          onForce={() => actions.terminate([session.id], true)}
          onAgain={() => onAgain(session)}
        />
        <Tabs
          label={t('session:view.label')}
          tabs={views.map((key) => ({ key, label: t(`session:view.${key}`) }))}
          value={view}
          onChange={setView}
        />
      </div>
      <div className={css.body}>
        <Suspense fallback={<Skeleton active style={{ padding: 20 }} />}>
          {view === 'overview' ? <Overview key={session.id} session={session} /> : null}
          {view === 'logs' ? <LogsView key={session.id} session={session} /> : null}
          {view === 'history' ? <HistoryView key={session.id} session={session} /> : null}
        </Suspense>
      </div>
    </div>
  )
}

export interface SessionDrawerProps {
  id: string
  onClose: () => void
  /** Opens the launcher filled in with what this session was asked for. */
  onAgain: (session: Session) => void
}

/** Everything about one session, over the list. The list stays in reach: another row shows another session. */
export function SessionDrawer({ id, onClose, onAgain }: SessionDrawerProps) {
  const { t } = useTranslation(['session', 'common'])
  const { session, query } = useSession(id)
  const actions = useSessionActions()
  const movedTo = session && session.id !== id ? session.id : undefined
  useEffect(() => {
    if (movedTo) actions.showDetail(movedTo)
  }, [movedTo, actions])
  return (
    <Drawer
      open
      mask={false}
      size={680}
      closable={false}
      onClose={onClose}
      aria-label={session?.name ?? t('session:notFound')}
      styles={{ body: { padding: 0, overflow: 'hidden' } }}
    >
      {session ? (
        <Content session={session} onClose={onClose} onAgain={onAgain} />
      ) : query.error ? (
        <div className={css.lost}>
          <Button type="text" aria-label={t('common:action.close')} icon={<X size={16} />} onClick={onClose} />
          <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
        </div>
      ) : (
        <Skeleton active style={{ padding: 20 }} />
      )}
    </Drawer>
  )
}
