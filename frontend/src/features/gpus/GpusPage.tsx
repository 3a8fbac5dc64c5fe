import { Button, Skeleton } from 'antd'
import { CircuitBoard, TriangleAlert, WifiOff } from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { asProblem } from '@/api/client'
import { useDevices, useMachines } from '@/api/hooks'
import type { DeviceBoard } from '@/api/types.gen'
import { formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { useLacks } from '@/api/useLacks'
import { DeviceCard } from './DeviceCard'
import css from './gpus.module.css'
import { HistoryCharts } from './HistoryCharts'
import { sessionNumbers } from './holders'

/** A sample that is older than this is no longer now, in ms. */
const freshFor = 20_000

function Waiting() {
  return (
    <div className={css.cards} aria-busy>
      {[0, 1].map((i) => (
        <div key={i} className={css.card}>
          <Skeleton active title={{ width: '40%' }} paragraph={{ rows: 4 }} />
        </div>
      ))}
    </div>
  )
}

/** What is not as it should be: the agent is not reached, samples stopped, or something could not be read. */
function Trouble({ board, host }: { board: DeviceBoard; host: string }) {
  const { t } = useTranslation('gpus')
  const now = useNow()
  const old = now - Date.parse(board.at) > freshFor
  if (!board.online) {
    return (
      <div className={css.trouble} role="status">
        <WifiOff size={15} aria-hidden />
        <span>
          <b>{t('offline', { host })}</b> {t('offlineText', { when: formatRelative(past(board.at, now), now) })}
        </span>
      </div>
    )
  }
  if (!old && !board.text) return null
  return (
    <div className={css.trouble} role="status">
      <TriangleAlert size={15} aria-hidden />
      <span>
        {old ? <b>{t('stopped', { when: formatRelative(past(board.at, now), now) })} </b> : <b>{t('lost')} </b>}
        {board.text}
      </span>
    </div>
  )
}

function Board({
  board,
  host,
  numbers,
  named,
}: {
  board: DeviceBoard
  host: string
  numbers: ReadonlyMap<string, number>
  named: boolean
}) {
  const { t } = useTranslation(['gpus', 'common'])
  const now = useNow()
  const elsewhere = useLacks()(board.agent, 'devices')
  if (elsewhere) {
    return (
      <div className={css.empty}>
        <EmptyState icon={CircuitBoard} title={t('gpus:elsewhereTitle', { host })} text={elsewhere} />
      </div>
    )
  }
  if (board.devices.length === 0) {
    return (
      <div className={css.empty}>
        <EmptyState icon={CircuitBoard} title={t('gpus:emptyTitle', { host })} text={board.text || t('gpus:emptyText')}>
          <Link to="/settings">
            <Button>{t('gpus:checks')}</Button>
          </Link>
        </EmptyState>
      </div>
    )
  }
  const stale = !board.online || now - Date.parse(board.at) > freshFor
  return (
    <>
      {named ? (
        <h2 className={css.host}>
          {board.agent} <span className={css.hostName}>{host}</span>
        </h2>
      ) : null}
      <Trouble board={board} host={host} />
      <div className={css.cards}>
        {board.devices.map((device) => (
          <DeviceCard key={device.uuid} device={device} numbers={numbers} stale={stale} />
        ))}
      </div>
      <HistoryCharts board={board} />
    </>
  )
}

/** The devices of every machine: what they do now, who holds them, and what they did. */
export function GpusPage() {
  const { t } = useTranslation('gpus')
  const devices = useDevices()
  const machines = useMachines().data
  const boards = devices.data
  const numbers = useMemo(() => sessionNumbers(boards ?? []), [boards])
  const hostOf = (agent: string) => machines?.find((m) => m.agent === agent)?.hostname || agent
  const first = boards?.[0]
  const note =
    first && boards.length === 1 && first.devices.length > 0
      ? t('note', {
          source: t(`source.${first.source}`, { defaultValue: first.source }),
          strategy: t(`strategy.${first.strategy}`),
          attach: t(`attach.${first.attach}`, { defaultValue: first.attach }),
        })
      : undefined
  return (
    <div className={css.page}>
      <PageHeader title={t('title')} note={note} />
      {devices.error && !boards ? (
        <ErrorState problem={asProblem(devices.error)} onRetry={() => void devices.refetch()} />
      ) : null}
      {!boards && !devices.error ? <Waiting /> : null}
      {boards?.length === 0 ? <EmptyState icon={CircuitBoard} title={t('noneTitle')} text={t('noneText')} /> : null}
      {boards?.map((board) => (
        <Board key={board.agent} board={board} host={hostOf(board.agent)} numbers={numbers} named={boards.length > 1} />
      ))}
    </div>
  )
}
