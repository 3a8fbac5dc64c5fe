import { useQueries } from '@tanstack/react-query'
import { Segmented, theme } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { DeviceBoard } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { now as clockNow } from '@/lib/now'
import { formatLoad } from '@/lib/share'
import { useStored } from '@/lib/stored'
import { useNow } from '@/lib/useNow'
import { Chart, type ChartSeries } from '@/ui/Chart'
import { ErrorState } from '@/ui/ErrorState'
import { seriesPalette } from '@/ui/palette'
import css from './gpus.module.css'
import { joinPoints } from './points'

const spans = { '15m': 15, '1h': 60, '24h': 24 * 60 } as const
type Span = keyof typeof spans

/** Colours of the devices' lines, in their order. */
function useLineColours(): string[] {
  return seriesPalette(theme.useToken().token)
}

const watts = (value: number) => `${(value / 1000).toFixed(0)} W`
const celsius = (value: number) => `${Math.round(value)} °C`

/** What the devices of one agent did, one line each, under one time axis and one cursor. */
export function HistoryCharts({ board }: { board: DeviceBoard }) {
  const { t } = useTranslation(['gpus', 'common'])
  const [span, setSpan] = useStored<Span>('gpuSpan', '15m')
  const kept = span === '24h' ? '24h' : '1h'
  const { agent, devices } = board
  const histories = useQueries({
    queries: devices.map((device) => ({
      queryKey: keys.deviceHistory(agent, device.uuid, kept),
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('device-history', {
          path: { agent, device: device.uuid },
          query: { since: kept === '24h' ? new Date(clockNow() - spans['24h'] * 60_000).toISOString() : undefined },
          signal,
        }),
      staleTime: Infinity,
    })),
  })
  const failure = histories.find((h) => h.error && !h.data)
  const now = useNow(board.online)
  const newest = Date.parse(board.at) / 1000
  const end = board.online ? Math.max(newest, now / 1000 - 10) : newest
  const range = useMemo<[number, number]>(() => [end - spans[span] * 60, end], [end, span])
  const data = histories.map((h) => h.data)
  const columns = useMemo(() => {
    const known = data.map((points) => points ?? [])
    return joinPoints(known, range[0])
    // data is one entry a device
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [...data, range])
  const colours = useLineColours()
  const lines = (values: (number | null)[][]): ChartSeries[] =>
    values.map((line, i) => ({
      label: devices.length > 2 ? '' : t('common:gpu.name', { index: devices[i]?.index ?? i }),
      values: line,
    }))
  const memory = Math.max(...devices.map((d) => d.memory), 1024 ** 3)
  const shared = { times: columns.times, range, syncKey: `gpus-${agent}`, height: 120 }
  return (
    <section className={css.history} aria-label={t('gpus:history')}>
      <div className={css.sectionHead}>
        <h2>{t('gpus:history')}</h2>
        {devices.length > 1 ? (
          <ul className={css.legend}>
            {devices.map((device, i) => (
              <li key={device.uuid}>
                <i className={css.swatch} style={{ background: colours[i % colours.length] }} aria-hidden />
                {t('common:gpu.name', { index: device.index })}
              </li>
            ))}
          </ul>
        ) : null}
        <Segmented<Span>
          size="small"
          aria-label={t('gpus:span.label')}
          value={span}
          onChange={setSpan}
          options={(Object.keys(spans) as Span[]).map((value) => ({ value, label: t(`gpus:span.${value}`) }))}
        />
      </div>
      {failure ? (
        <ErrorState
          compact
          problem={asProblem(failure.error)}
          onRetry={() => histories.forEach((h) => void h.refetch())}
        />
      ) : (
        <div className={css.charts}>
          <Chart {...shared} title={t('gpus:load')} series={lines(columns.util)} format={formatLoad} max={10_000} />
          <Chart {...shared} title={t('gpus:vram')} series={lines(columns.memory)} format={formatBytes} max={memory} />
          <Chart {...shared} title={t('gpus:power')} series={lines(columns.power)} format={watts} decimal />
          <Chart
            {...shared}
            title={t('gpus:temperature')}
            series={lines(columns.temperature)}
            format={celsius}
            max={100}
          />
        </div>
      )}
    </section>
  )
}
