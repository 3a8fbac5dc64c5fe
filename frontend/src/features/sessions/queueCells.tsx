import { Button, InputNumber, Popover, Progress, Tooltip } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLatestUsage } from '@/api/hooks'
import { DEFAULT_PRIORITY, MAX_PRIORITY } from '@/api/rules.gen'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { formatBytes } from '@/lib/bytes'
import { isUnjudged } from '@/lib/idle'
import { now } from '@/lib/now'
import { formatLoad } from '@/lib/share'
import { isLive } from '@/lib/status'
import { IdleBadge, IdlePopover } from '@/ui/IdleParts'
import { LevelText } from '@/ui/LevelBadge'
import { StatusBadge } from '@/ui/StatusBadge'
import { useAcceleratorText } from '@/ui/useAcceleratorText'
import { useLacks } from '@/api/useLacks'
import { kernelsOf } from './amounts'
import { deviceUse } from './deviceUse'
import { loadText } from './loadText'
import css from './SessionsPage.module.css'

/** What was asked of devices, what was granted, and what is made of it now. */
export function AcceleratorCell({ session }: { session: Session }) {
  const { t } = useTranslation(['sessions', 'common'])
  const text = useAcceleratorText()(session.spec.accelerator)
  const usage = useLatestUsage(session.id)
  if (!session.spec.accelerator) return <span className={css.dim}>–</span>
  const kernels = kernelsOf(session)
  const use = deviceUse(session, session.status === 'RUNNING' ? usage : undefined)
  const { average, memory, promised } = use
  const rows = [
    average === undefined ? '' : `${t('sessions:gpu.load')}: ${loadText(use, t)}`,
    memory === undefined
      ? ''
      : `${t('sessions:gpu.vram')}: ${formatBytes(memory)}${promised ? ` / ${formatBytes(promised)}` : ''}`,
  ].filter(Boolean)
  const tip = (
    <div className={css.tip}>
      <div>{text}</div>
      {rows.map((row) => (
        <div key={row}>{row}</div>
      ))}
      {session.enforcement ? (
        <LevelText
          level={session.enforcement}
          whole={session.grants.gpus.length > 0 && session.grants.gpus.every((g) => g.whole)}
        />
      ) : null}
    </div>
  )
  return (
    <Tooltip title={tip} mouseEnterDelay={0.4}>
      <div className={css.gpu}>
        <span className={css.gpuText}>
          {session.spec.accelerator.devices
            ? t('sessions:gpu.devices', { count: session.spec.accelerator.devices })
            : text}
          {kernels > 1 ? <span className={css.dim}> × {kernels}</span> : null}
        </span>
        {average === undefined ? null : <span className={`${css.dim} num`}>{formatLoad(average)}</span>}
      </div>
    </Tooltip>
  )
}

/** The idle checks of a running session; a click tells them at length. */
export function IdleCell({ session }: { session: Session }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  if (session.status !== 'RUNNING') return <span className={css.dim}>–</span>
  return (
    <IdlePopover
      checks={session.idle}
      keepUntil={session.keepUntil}
      unjudged={isUnjudged(session.idle, session.spec.idle, session.startedAt, now())}
      onKeep={session.idle.length > 0 ? (hours) => actions.keep([session.id], hours) : undefined}
    >
      <button type="button" className={css.plain} aria-label={t('idle.title')} onClick={(e) => e.stopPropagation()}>
        <IdleBadge checks={session.idle} keepUntil={session.keepUntil} />
      </button>
    </IdlePopover>
  )
}

/** A number from 0 to 100, or to the priority of a session that cannot be moved up, and a button. */
export function PriorityForm({ sessions, onSet }: { sessions: readonly Session[]; onSet: (priority: number) => void }) {
  const { t } = useTranslation('sessions')
  const lacks = useLacks()
  const fixed = sessions.filter((s) => lacks(s.agent, 'raise-priority'))
  const max = Math.min(MAX_PRIORITY, ...fixed.map((s) => s.priority))
  const [value, setValue] = useState<number | null>(Math.min(sessions[0]?.priority ?? DEFAULT_PRIORITY, max))
  const right = value !== null && Number.isInteger(value) && value >= 0 && value <= max
  return (
    <div className={css.priority} onClick={(e) => e.stopPropagation()}>
      <InputNumber
        autoFocus
        size="small"
        min={0}
        max={max}
        precision={0}
        value={value}
        aria-label={t('column.priority')}
        onChange={setValue}
        onPressEnter={() => right && onSet(value)}
      />
      <Button size="small" type="primary" disabled={!right} onClick={() => right && onSet(value)}>
        {t('priority.set')}
      </Button>
      <span className={css.dim}>{fixed[0] ? lacks(fixed[0].agent, 'raise-priority') : t('priority.hint')}</span>
    </div>
  )
}

/** The priority; while a session waits, a click changes it. */
export function PriorityCell({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const actions = useSessionActions()
  const [open, setOpen] = useState(false)
  if (session.status !== 'PENDING')
    return <span className={isLive(session.status) ? undefined : css.dim}>{session.priority}</span>
  const set = (priority: number) => {
    setOpen(false)
    actions.setPriority([session.id], priority)
  }
  return (
    <Popover
      open={open}
      onOpenChange={setOpen}
      trigger={['click']}
      arrow={false}
      destroyOnHidden
      content={<PriorityForm sessions={[session]} onSet={set} />}
    >
      <button
        type="button"
        className={`${css.plain} ${css.editable}`}
        aria-label={t('priority.change', { name: session.name })}
        onClick={(e) => e.stopPropagation()}
      >
        {session.priority}
      </button>
    </Popover>
  )
}

/** Of a cluster: how many of its containers run, and which. */
export function ClusterRing({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const size = Math.max(session.kernels.length, kernelsOf(session))
  if (size < 2) return null
  const ready = session.kernels.filter((k) => k.status === 'RUNNING').length
  const list = (
    <div className={css.kernels}>
      {session.kernels.map((kernel) => (
        <div key={kernel.name}>
          <span className={css.mono}>{kernel.name}</span>
          <StatusBadge status={kernel.status} />
        </div>
      ))}
      {session.kernels.length === 0 ? t('cluster.none', { count: size }) : null}
    </div>
  )
  return (
    <Popover content={list} placement="bottomLeft" arrow={false}>
      <span className={css.ring} role="img" aria-label={t('cluster.ready', { ready, count: size })}>
        <Progress
          type="circle"
          size={14}
          strokeWidth={16}
          percent={(ready / size) * 100}
          showInfo={false}
          strokeColor="var(--ant-color-success)"
        />
        <span className="num">
          {ready}/{size}
        </span>
      </span>
    </Popover>
  )
}
