import { Button } from 'antd'
import { ChevronDown, ChevronUp, CirclePower, LayoutGrid, ScrollText, SquareTerminal, X } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { estimateText, messageText } from '@/lib/phrases'
import { formatPercent } from '@/lib/share'
import { isLive } from '@/lib/status'
import { PullBar } from '@/ui/PullBar'
import { StatusBadge } from '@/ui/StatusBadge'
import { pullShare, usePullTexts, useWhy } from '@/ui/useWhy'
import { type Launch, tallyOf } from './launches'
import css from './notifications.module.css'

/** What a launch comes to in one line: "4 of 6 pulling". */
function Summary({ launch }: { launch: Launch }) {
  const { t } = useTranslation(['notifications', 'common'])
  const { status, count, total } = tallyOf(launch)
  const word = t(`common:status.${status as 'RUNNING'}`, { defaultValue: status }).toLocaleLowerCase()
  const [first] = launch.sessions
  const share = first?.status === 'PULLING' && total === 1 && first.pull ? pullShare(first.pull) : undefined
  return (
    <>
      <StatusBadge
        status={status}
        failed={launch.sessions.some((s) => s.result === 'failure')}
        text={total > 1 ? t('notifications:tally', { count, total, status: word }) : undefined}
      />
      {share === undefined ? null : <span className={`${css.faint} num`}>{formatPercent(share * 100)}</span>}
    </>
  )
}

/** The card of a launch while it is collapsed: its name, how far it is, and the way to close it. */
export function LaunchChip({
  launch,
  open,
  onOpen,
  onDismiss,
}: {
  launch: Launch
  open: boolean
  onOpen: () => void
  onDismiss: () => void
}) {
  const { t } = useTranslation('notifications')
  const Chevron = open ? ChevronDown : ChevronUp
  return (
    <li className={`${css.chip} ${open ? css.chosen : ''}`} data-launch={launch.key}>
      <button type="button" className={css.chipFace} aria-expanded={open} onClick={onOpen}>
        <span className={css.chipName}>{launch.name}</span>
        <Summary launch={launch} />
        <Chevron size={14} aria-hidden className={css.faint} />
      </button>
      <Button
        type="text"
        size="small"
        aria-label={t('dismiss', { name: launch.name })}
        icon={<X size={14} />}
        onClick={onDismiss}
      />
    </li>
  )
}

/** What a person wants to know and do about one session of a launch. Of one alone the name is above it. */
function Line({ session, alone }: { session: Session; alone: boolean }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  const pullTexts = usePullTexts()
  const why = useWhy()(session)
  const running = session.status === 'RUNNING'
  const pull = session.status === 'PULLING' ? session.pull : undefined
  const text = pull ? pullTexts(pull).join(' · ') : (session.error && messageText(session.error)) || why
  return (
    <li className={css.line} data-session={session.id}>
      <div className={css.lineHead}>
        {alone ? null : (
          <button type="button" className={css.name} onClick={() => actions.showDetail(session.id)}>
            {session.name}
          </button>
        )}
        <span className={alone ? undefined : css.lineStatus}>
          <StatusBadge status={session.status} failed={session.result === 'failure'} />
        </span>
        {session.startedAt ? (
          <span className={css.lineButtons}>
            {running ? (
              <>
                <Button
                  size="small"
                  type={alone ? 'primary' : 'default'}
                  icon={<LayoutGrid size={14} />}
                  onClick={() => actions.openApps(session.id)}
                >
                  {t('action.apps')}
                </Button>
                <Button
                  size="small"
                  icon={<SquareTerminal size={14} />}
                  onClick={() => actions.openTerminal(session.id)}
                >
                  {t('action.terminal')}
                </Button>
              </>
            ) : null}
            <Button size="small" icon={<ScrollText size={14} />} onClick={() => actions.showLogs(session.id)}>
              {t('action.logs')}
            </Button>
          </span>
        ) : null}
      </div>
      {pull ? (
        <div className={css.pull}>
          <PullBar pull={pull} />
        </div>
      ) : null}
      {text ? <div className={css.text}>{text}</div> : null}
      {session.status === 'PENDING' && session.wait ? (
        <div className={css.text}>{t('wait.start', { estimate: estimateText(session.wait) })}</div>
      ) : null}
    </li>
  )
}

/** The card of a launch, opened: each of its sessions. What ends them is far from what closes the card. */
export function LaunchPanel({ launch, onClose }: { launch: Launch; onClose: () => void }) {
  const { t } = useTranslation(['notifications', 'common'])
  const actions = useSessionActions()
  const live = launch.sessions.filter((s) => isLive(s.status) && s.status !== 'TERMINATING' && !s.ending)
  const [first, ...others] = launch.sessions
  const alone = others.length === 0 && first
  return (
    <section className={css.panel} aria-label={launch.name} data-panel={launch.key}>
      <div className={css.panelHead}>
        {alone ? (
          <button type="button" className={css.name} onClick={() => actions.showDetail(alone.id)}>
            {alone.name}
          </button>
        ) : (
          <strong className={css.name}>{launch.name}</strong>
        )}
        {live.length > 0 ? (
          <Button
            size="small"
            danger
            icon={<CirclePower size={14} />}
            onClick={() => actions.terminate(live.map((s) => s.id))}
          >
            {live.length > 1 ? t('notifications:terminateAll', { count: live.length }) : t('common:action.terminate')}
          </Button>
        ) : null}
        <Button
          type="text"
          size="small"
          className={css.rowEnd ?? ''}
          aria-label={t('notifications:collapse', { name: launch.name })}
          icon={<ChevronDown size={14} />}
          onClick={onClose}
        />
      </div>
      <ul className={css.lines}>
        {launch.sessions.map((session) => (
          <Line key={session.id} session={session} alone={Boolean(alone)} />
        ))}
      </ul>
    </section>
  )
}
