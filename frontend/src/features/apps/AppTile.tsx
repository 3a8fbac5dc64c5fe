import { Button } from 'antd'
import {
  ChartLine,
  CircleAlert,
  CodeXml,
  FlaskConical,
  Globe,
  LoaderCircle,
  type LucideIcon,
  NotebookPen,
  Plug,
  Sigma,
  SlidersHorizontal,
  CircleStop,
  SquareTerminal,
  TriangleAlert,
  X,
} from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Deed, OpenWish } from '@/api/openApp'
import type { App } from '@/api/types.gen'
import { whyText } from '@/lib/phrases'
import { formatElapsed } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './apps.module.css'
import { isPort } from './appOrder'
import { DoorLine, LostDoorLine } from './DoorLine'
import { OpenForm } from './OpenForm'

const ICONS: [RegExp, LucideIcon][] = [
  [/jupyter|notebook/, NotebookPen],
  [/code|vscode/, CodeXml],
  [/tensorboard/, ChartLine],
  [/mlflow|nni/, FlaskConical],
  [/rstudio|matlab/, Sigma],
  [/terminal|ttyd|ssh/, SquareTerminal],
  [/^port-/, Plug],
]

function iconOf(id: string): LucideIcon {
  return ICONS.find(([pattern]) => pattern.test(id))?.[1] ?? Globe
}

interface AppTileProps {
  app: App
  deed: Deed
  onOpen: (wish?: OpenWish) => void
  onStop: () => void
  onShut: () => void
}

/** One app: what it is, how it stands, and the button that opens it. */
export function AppTile({ app, deed, onOpen, onStop, onShut }: AppTileProps) {
  const { t } = useTranslation('apps')
  const Icon = iconOf(app.id)
  const busy = deed.since !== null
  const starting = busy || app.state === 'starting'
  const [asks, setAsks] = useState(false)
  const ready = app.state === 'ready' && !busy
  const open = (wish?: OpenWish) => {
    setAsks(false)
    onOpen(wish)
  }
  const problem = deed.problem ?? (app.state === 'failed' && !busy ? app.error : undefined)
  return (
    <div
      className={css.tile}
      data-app={app.id}
      data-asks={asks || Boolean(app.door ?? app.lostDoor)}
      data-state={starting ? 'starting' : problem ? 'failed' : app.state}
    >
      <button
        type="button"
        className={css.open}
        disabled={busy}
        aria-expanded={app.dir ? asks : undefined}
        onClick={() => {
          if (app.installable) open({ install: true })
          else if (app.dir && !ready && !starting) setAsks(!asks)
          else open()
        }}
      >
        <span className={css.icon}>
          {starting ? (
            <LoaderCircle size={20} className={css.turn} aria-hidden />
          ) : (
            <Icon size={20} strokeWidth={1.75} aria-hidden />
          )}
        </span>
        <span className={css.words}>
          <span className={css.name}>
            {app.installable && !starting ? t('install', { title: app.title }) : app.title}
          </span>
          <State app={app} since={deed.since} failed={Boolean(problem)} />
        </span>
      </button>
      {starting ? (
        <div className={css.tools}>
          {isPort(app) ? null : (
            <Button
              type="text"
              size="small"
              aria-label={t('giveUp', { title: app.title })}
              title={t('giveUpShort')}
              disabled={busy && !deed.giveUp}
              icon={<X size={15} />}
              onClick={deed.giveUp ?? onStop}
            />
          )}
        </div>
      ) : app.installable ? null : (
        <div className={css.tools}>
          {app.kind === 'web' ? (
            <Button
              type="text"
              size="small"
              aria-label={t('open.options', { title: app.title })}
              aria-expanded={asks}
              title={t('open.optionsShort')}
              icon={<SlidersHorizontal size={14} />}
              onClick={() => setAsks(!asks)}
            />
          ) : null}
          {ready && !isPort(app) ? (
            <Button
              type="text"
              size="small"
              aria-label={t('stopApp', { title: app.title })}
              title={t('stop')}
              icon={<CircleStop size={15} />}
              onClick={onStop}
            />
          ) : null}
        </div>
      )}
      {asks ? <OpenForm app={app} onOpen={open} onCancel={() => setAsks(false)} /> : null}
      {app.door && !asks ? <DoorLine door={app.door} title={app.title} onClose={onShut} /> : null}
      {app.lostDoor && !asks ? (
        <LostDoorLine door={app.lostDoor} title={app.title} onOpen={() => open(app.lostDoor)} onDismiss={onShut} />
      ) : null}
      {starting && app.progress ? (
        <div className={css.installing} title={app.progress} aria-live="polite">
          {app.progress}
        </div>
      ) : null}
      {starting ? <div className={css.progress} role="progressbar" aria-label={t('state.starting')} /> : null}
      {problem && !starting ? (
        <div className={css.problem} role="alert">
          <CircleAlert size={13} aria-hidden />
          <span>
            {problem.message} {problem.hint ? <span className={css.hint}>{problem.hint}</span> : null}
          </span>
        </div>
      ) : null}
      {app.notKept ? (
        <div className={css.notKept}>
          <TriangleAlert size={13} aria-hidden />
          <span>{whyText({ why: t('notKept'), said: app.notKept })}</span>
        </div>
      ) : app.kept ? (
        <div className={css.kept}>{t('kept')}</div>
      ) : null}
      {deed.blocked ? (
        <div className={css.blocked}>
          {deed.unasked ? null : `${t('blocked')} `}
          <a href={deed.blocked} target="_blank" rel="noopener">
            {t('openHere')}
          </a>
        </div>
      ) : null}
    </div>
  )
}

function State({ app, since, failed }: { app: App; since: number | null; failed: boolean }) {
  const { t } = useTranslation('apps')
  const now = useNow(since !== null)
  const time = formatElapsed(Math.max(0, now - (since ?? now)))
  if (since !== null)
    return <span className={css.state}>{t(app.installable ? 'installingFor' : 'startingFor', { time })}</span>
  if (app.installable && app.state === 'starting') return <span className={css.state}>{t('installing')}</span>
  if (app.installable && !failed) return <span className={css.state}>{t('installText')}</span>
  const state = failed ? 'failed' : app.state
  return (
    <span className={css.state}>
      <span className={`${css.dot} ${css[state] ?? ''}`} aria-hidden />
      {app.found && state === 'ready'
        ? t('portState.found')
        : t(`${isPort(app) ? 'portState' : 'state'}.${state as 'ready'}`, { defaultValue: state })}
      {app.dir && state === 'ready' ? (
        <span className={css.shows} title={app.dir}>
          {app.dir.replace(/^\/home\/work\//, '')}
        </span>
      ) : null}
    </span>
  )
}
