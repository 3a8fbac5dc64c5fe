import { Button, Tooltip } from 'antd'
import { BrainCircuit, FolderUp, SquareCode, TriangleAlert, Workflow } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { useAgents, useLatestUsage } from '@/api/hooks'
import type { Ending, Session, Wait, Warning } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { formatBytes, parseBytes } from '@/lib/bytes'
import { type AnnouncedEnd, announcedEnd } from '@/lib/idle'
import { splitImage } from '@/lib/image'
import { isLive } from '@/lib/status'
import { EndingText } from '@/ui/EndingText'
import { PullBar } from '@/ui/PullBar'
import { Countdown, useEndReason } from '@/ui/Reclaim'
import { ResourceBar } from '@/ui/ResourceBar'
import { StatusBadge } from '@/ui/StatusBadge'
import { formatExact, formatShortRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { estimateText, messageText, waitTexts } from '@/lib/phrases'
import { Elapsed } from '@/ui/Times'
import { useWhy } from '@/ui/useWhy'
import { kernelsOf } from './amounts'
import { ClusterRing } from './queueCells'
import css from './SessionsPage.module.css'

export function NameCell({ session }: { session: Session }) {
  const { t } = useTranslation()
  const { search } = useLocation()
  const Icon = { batch: Workflow, system: FolderUp, interactive: SquareCode, inference: BrainCircuit }[session.type]
  return (
    <div className={css.name}>
      <Icon size={14} aria-label={t(`type.${session.type}`)} />
      <div className={css.nameLines}>
        <Link
          className={css.nameLink}
          to={`/sessions/${session.id}${search}`}
          title={session.name}
          onClick={(e) => e.stopPropagation()}
        >
          {session.name}
        </Link>
        <Location session={session} />
      </div>
    </div>
  )
}

/** Where it is, once there is more than this computer. */
function Location({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const several = (useAgents().data?.length ?? 0) > 1
  if (!several || !session.agent) return null
  return (
    <span className={css.location} title={t('location', { agent: session.agent })}>
      {session.agent}
    </span>
  )
}

/** Its agent is not reached: the status is as old as that. */
function Unheard({ session, at }: { session: Session; at: string }) {
  const { t } = useTranslation()
  const now = useNow()
  return (
    <Tooltip title={`${t('reach.heard', { when: formatExact(at) })}. ${t('reach.asThen')}`} mouseEnterDelay={0.2}>
      <div className={css.waiting}>
        <span className={css.waitingHead}>
          <StatusBadge status={session.status} />
        </span>
        <span className={css.whyBelow}>{t('reach.heard', { when: formatShortRelative(past(at, now), now) })}</span>
      </div>
    </Tooltip>
  )
}

/** The place in the queue of its machine, when it starts, and the whole reason behind it. */
function Waiting({ session, wait }: { session: Session; wait: Wait }) {
  const { t } = useTranslation()
  const place = t('wait.place', { position: wait.position, machine: session.agent })
  const start = t('wait.start', { estimate: estimateText(wait) })
  const { lead, details } = waitTexts(wait, session.agent)
  const tip = (
    <div className={css.tip}>
      <b>{place}</b>
      <div>{lead}</div>
      <div>{start}</div>
      {details ? <div>{details}</div> : null}
    </div>
  )
  return (
    <Tooltip title={tip} mouseEnterDelay={0.2} styles={{ root: { maxWidth: 420 } }}>
      <div className={css.waiting}>
        <span className={css.waitingHead}>
          <StatusBadge status={session.status} />
          {wait.position > 0 ? <span className={`${css.place} num`}>{place}</span> : null}
          <ClusterRing session={session} />
          <span className={css.start}>{start}</span>
        </span>
        <span className={css.whyBelow}>{lead}</span>
      </div>
    </Tooltip>
  )
}

/** It runs, and something about it is not as it should be. */
function Troubled({ head, warnings, last }: { head: ReactNode; warnings: readonly Warning[]; last: Warning }) {
  const { t } = useTranslation()
  const title = (w: Warning) => t(`warning.${w.code as 'session_run_device-lost'}`, { defaultValue: w.title })
  const tip = (
    <div className={css.tip}>
      {warnings.map((w) => (
        <div key={`${w.code}${w.device ?? ''}`}>
          <b>{title(w)}</b>
          <div>{w.text}</div>
        </div>
      ))}
    </div>
  )
  return (
    <Tooltip title={tip} mouseEnterDelay={0.2} styles={{ root: { maxWidth: 420 } }}>
      <div className={css.waiting}>
        <span className={css.waitingHead}>{head}</span>
        <span className={css.troubleBelow}>
          <TriangleAlert size={12} aria-hidden /> {title(last)}
        </span>
      </div>
    </Tooltip>
  )
}

/** It is about to be terminated, which can be undone, or it was not. */
function EndingSoon({ session, ending }: { session: Session; ending: Ending }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  return (
    <div className={css.waiting}>
      <span className={css.waitingHead}>
        <StatusBadge status={session.status} />
        <Button
          type="link"
          size="small"
          className={css.undo ?? ''}
          onClick={(event) => {
            event.stopPropagation()
            actions.undoTerminate([session.id])
          }}
        >
          {t(ending.error ? 'ending.dismiss' : 'ending.undo')}
        </Button>
      </span>
      <span className={`${css.badBelow} num`}>
        <EndingText ending={ending} />
      </span>
    </div>
  )
}

/** It runs, and is about to be reclaimed. */
function ReclaimSoon({ head, end }: { head: ReactNode; end: AnnouncedEnd }) {
  const reason = useEndReason()(end)
  return (
    <Tooltip title={`${reason} ${formatExact(end.at)}`} mouseEnterDelay={0.2}>
      <div className={css.waiting}>
        <span className={css.waitingHead}>{head}</span>
        <span className={css.troubleBelow}>
          <TriangleAlert size={12} aria-hidden /> <Countdown end={end} />
        </span>
      </div>
    </Tooltip>
  )
}

export function StatusCell({ session }: { session: Session }) {
  const why = useWhy()(session)
  if (session.lastHeard && isLive(session.status)) return <Unheard session={session} at={session.lastHeard} />
  if (session.ending) return <EndingSoon session={session} ending={session.ending} />
  if (session.status === 'PENDING' && session.wait) return <Waiting session={session} wait={session.wait} />
  const head = (
    <>
      <StatusBadge status={session.status} failed={session.result === 'failure'} />
      <ClusterRing session={session} />
    </>
  )
  const end = announcedEnd(session)
  if (end) return <ReclaimSoon head={head} end={end} />
  const warning = isLive(session.status) ? session.warnings.at(-1) : undefined
  if (!why && warning) return <Troubled head={head} warnings={session.warnings} last={warning} />
  if (!why) return <div className={css.status}>{head}</div>
  return (
    <Tooltip title={session.error ? messageText(session.error) : why} mouseEnterDelay={0.4}>
      <div className={css.waiting}>
        <span className={css.waitingHead}>
          {head}
          {session.status === 'PULLING' && session.pull ? (
            <span className={css.pull}>
              <PullBar pull={session.pull} />
            </span>
          ) : null}
        </span>
        <span className={session.result === 'failure' ? css.badBelow : css.whyBelow}>{why}</span>
      </div>
    </Tooltip>
  )
}

function Use({
  label,
  used,
  granted,
  text,
  total,
  bar = true,
}: {
  label: string
  used: number | undefined
  granted: number
  text: string
  total: string
  bar?: boolean
}) {
  if (used === undefined) return <span className={css.dim}>{total}</span>
  return (
    <div className={css.use}>
      <span>
        {text} <span className={css.dim}>/ {total}</span>
      </span>
      {bar ? (
        <div className={css.useBar}>
          <ResourceBar label={`${label}: ${text} / ${total}`} promised={0} load={used} total={granted} />
        </div>
      ) : null}
    </div>
  )
}

export function CpuCell({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const usage = useLatestUsage(session.id)
  const granted = (session.spec.resources.cpu ?? 1) * kernelsOf(session)
  const used = session.status === 'RUNNING' && !session.lastHeard ? usage?.cpu : undefined
  return (
    <Use label={t('column.cpu')} used={used} granted={granted} text={(used ?? 0).toFixed(1)} total={String(granted)} />
  )
}

export function MemoryCell({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const usage = useLatestUsage(session.id)
  const granted = (parseBytes(session.spec.resources.memory) ?? 0) * kernelsOf(session)
  const used = session.status === 'RUNNING' && !session.lastHeard ? usage?.memory : undefined
  return (
    <Use
      label={t('column.memory')}
      used={used}
      granted={granted}
      text={formatBytes(used ?? 0)}
      total={formatBytes(granted)}
      bar={false}
    />
  )
}

export function ElapsedCell({ session }: { session: Session }) {
  // Of one whose agent is not reached nobody knows whether it still runs.
  const until = session.terminatedAt ?? session.lastHeard
  if (session.startedAt) return <Elapsed from={session.startedAt} to={until} />
  return (
    <span className={css.dim}>
      <Elapsed from={session.createdAt} to={until} />
    </span>
  )
}

/** The last part of the path with the tag: what tells images apart in a narrow column. */
export function ImageCell({ image }: { image: string }) {
  const { name, tag } = splitImage(image)
  return (
    <span title={image}>
      {name.slice(name.lastIndexOf('/') + 1)}
      <span className={css.dim}>:{tag}</span>
    </span>
  )
}
