import { Segmented } from 'antd'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useUsage } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { formatBytes, formatRate, parseBytes } from '@/lib/bytes'
import { formatLoad } from '@/lib/share'
import { isLive } from '@/lib/status'
import { useNow } from '@/lib/useNow'
import { Chart, type ChartSeries } from '@/ui/Chart'
import { ErrorState } from '@/ui/ErrorState'
import { inOrder, useGrantName } from './Kernels'
import { toColumns } from './rates'
import css from './SessionDrawer.module.css'

const minutes = { short: 15, long: 60 } as const
type Range = keyof typeof minutes

const cores = (value: number) => (value >= 10 ? value.toFixed(0) : value.toFixed(value < 0.1 && value > 0 ? 2 : 1))

/** CPU, memory, network and disk of the last hour, then live, under one time axis and one cursor. */
export function LiveCharts({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const usage = useUsage(session.id)
  const [span, setSpan] = useState<Range>('short')
  const live = isLive(session.status)
  const now = useNow(live)
  const last = usage.data?.at(-1)
  const end = live ? now / 1000 : last ? Date.parse(last.at) / 1000 : now / 1000
  const samples = usage.data
  // The axis moves by whole samples, not by every tick of the clock.
  const to = live && last ? Math.max(Date.parse(last.at) / 1000, end - 10) : end
  // What ended soon fills the axis.
  const start = live || !session.startedAt ? 0 : Date.parse(session.startedAt) / 1000
  const range = useMemo<[number, number]>(() => [Math.max(to - minutes[span] * 60, start), to], [to, span, start])
  const columns = useMemo(() => toColumns(samples ?? [], range[0]), [samples, range])
  const kernels = session.spec.cluster ?? 1
  const cpus = (session.spec.resources.cpu ?? 1) * kernels
  const memory = (parseBytes(session.spec.resources.memory) ?? 0) * kernels
  const series = useMemo(
    () => ({
      cpu: [{ label: `/ ${cpus}`, values: columns.cpu }],
      memory: [{ label: memory ? `/ ${formatBytes(memory)}` : '', values: columns.memory }],
      network: [
        { label: t('chart.in'), values: columns.netRx },
        { label: t('chart.out'), values: columns.netTx },
      ],
      disk: [
        { label: t('chart.read'), values: columns.diskRead },
        { label: t('chart.write'), values: columns.diskWrite },
      ],
    }),
    [columns, cpus, memory, t],
  )
  const nameOf = useGrantName(session.agent)
  const lines = inOrder([...columns.gpus.values()], nameOf)
  const label = (line: { device: string; instance?: string }) => (lines.length > 1 ? nameOf(line) : '')
  const load: ChartSeries[] = lines.map((line) => ({ label: label(line), values: line.util }))
  const vram: ChartSeries[] = lines.map((line) => ({ label: label(line), values: line.vram }))
  const most = Math.max(0, ...session.grants.gpus.map((g) => g.memory))
  // Of what ended before samples were kept, or without one, there is nothing to draw.
  if (!live && samples?.length === 0) return null
  const shared = { times: columns.times, range, syncKey: `session-${session.id}` }
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t(live ? 'section.live' : 'section.used')}</h3>
        <Segmented<Range>
          size="small"
          aria-label={t('chart.range')}
          value={span}
          onChange={setSpan}
          options={[
            { value: 'short', label: t('chart.range15') },
            { value: 'long', label: t('chart.range60') },
          ]}
        />
      </div>
      {usage.error ? (
        <ErrorState compact problem={asProblem(usage.error)} onRetry={() => void usage.refetch()} />
      ) : usage.data && usage.data.length === 0 ? (
        <div className={css.quiet}>{t('chart.emptyLive')}</div>
      ) : (
        <div className={css.charts}>
          <Chart {...shared} title={t('chart.cpu')} series={series.cpu} format={cores} max={cpus} />
          <Chart
            {...shared}
            title={t('chart.memory')}
            series={series.memory}
            format={formatBytes}
            {...(memory ? { max: memory } : {})}
          />
          {lines.length > 0 ? (
            <>
              <Chart {...shared} title={t('chart.gpu')} series={load} format={formatLoad} max={10_000} />
              <Chart
                {...shared}
                title={t('chart.vram')}
                series={vram}
                format={formatBytes}
                {...(most > 0 ? { max: most } : {})}
              />
            </>
          ) : null}
          <Chart {...shared} title={t('chart.network')} series={series.network} format={formatRate} />
          <Chart {...shared} title={t('chart.disk')} series={series.disk} format={formatRate} />
        </div>
      )}
    </section>
  )
}
