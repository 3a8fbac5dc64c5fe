import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Segmented } from 'antd'
import dayjs from 'dayjs'
import { ChartColumn } from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { call, target } from '@/api/client'
import { keys } from '@/api/keys'
import type { UsageReport } from '@/api/types.gen'
import { saveUrl } from '@/lib/save'
import { digits, formatEnergy, formatPercent, mjPerKwh, toHours } from '@/lib/share'
import { BarChart, type BarLayer } from '@/ui/BarChart'
import { EmptyState } from '@/ui/EmptyState'
import { foreignColour, partColour, reservedColour } from '@/ui/palette'
import {
  daysBetween,
  groupings,
  groupRows,
  metrics,
  stacks,
  sumUp,
  type Group,
  type Metric,
  type Stack,
} from './accounts'
import { Balance } from './Balance'
import { Frame, Tile } from './Frame'
import css from './usage.module.css'
import { Measured, UsageTable } from './UsageTable'
import type { UsageChange, UsageProps, UsageState } from './useUsageState'

function Totals({ report }: { report: UsageReport }) {
  const { t } = useTranslation('usage')
  const mine = sumUp(report.totals.filter((row) => row.kind === 'session'))
  const all = sumUp(report.totals)
  const part = (some: number, whole: number) => (whole > 0 ? formatPercent((some / whole) * 100) : '–')
  const busy = (ms: number, of: number) => t('tile.busy', { hours: digits(toHours(ms)), part: part(ms, of) })
  return (
    <section className={css.tiles} aria-label={t('totals')}>
      <Tile
        name={t('metric.gpu')}
        main={digits(toHours(mine.allocGpuMs))}
        foot={busy(mine.withinGpuMs, mine.allocGpuMs)}
      />
      <Tile
        name={t('metric.cpu')}
        main={digits(toHours(mine.allocCpuMs))}
        foot={busy(mine.withinCpuMs, mine.allocCpuMs)}
      />
      <Tile
        name={t('metric.energy')}
        main={formatEnergy(mine.energy)}
        foot={t('tile.energy', { all: formatEnergy(all.energy) })}
      />
      <Tile
        name={t('tile.measured')}
        main={
          all.coveredMs + all.estimatedMs + all.gapMs > 0
            ? part(all.coveredMs, all.coveredMs + all.estimatedMs + all.gapMs)
            : '–'
        }
        foot={t('tile.measuredText')}
      />
    </section>
  )
}

function useLayers(groups: Group[], state: UsageState): { days: string[]; layers: BarLayer[] } {
  const { t } = useTranslation('usage')
  return useMemo(() => {
    const days = daysBetween(state.from, state.to)
    const labelOf = (stack: Stack) => {
      if (stack.kind !== 'session') return t(`kind.${stack.kind}`)
      if (stack.group) return stack.group.name || t(state.by === 'device' ? 'noDevice' : 'noLabel')
      return t(state.by === 'day' ? 'kind.session' : 'smaller')
    }
    const smaller = (stack: Stack) => stack.key === 'rest' && state.by !== 'day'
    const colourOf = (stack: Stack, i: number) =>
      smaller(stack)
        ? foreignColour
        : stack.kind === 'session'
          ? partColour(i)
          : stack.kind === 'other'
            ? foreignColour
            : reservedColour
    const layers = stacks(groups, days, state.metric, state.by).map((stack, i) => ({
      key: stack.key,
      label: labelOf(stack),
      colour: colourOf(stack, i),
      hatched: stack.kind === 'other' || stack.kind === 'unattributed',
      values: stack.values,
    }))
    return { days: days.map((day) => dayjs(day).format('MM-DD')), layers }
  }, [groups, state, t])
}

function ChartCard({
  groups,
  state,
  change,
}: {
  groups: Group[]
  state: UsageState
  change: (change: UsageChange) => void
}) {
  const { t } = useTranslation('usage')
  const { days, layers } = useLayers(groups, state)
  const format = (value: number) => (state.metric === 'energy' ? formatEnergy(value * mjPerKwh) : `${digits(value)} h`)
  return (
    <section className={css.card}>
      <div className={css.cardHead}>
        <Segmented<Metric>
          aria-label={t('metric.label')}
          size="small"
          value={state.metric}
          onChange={(metric) => change({ metric })}
          options={metrics.map((value) => ({ value, label: t(`metric.${value}`) }))}
        />
        <ul className={css.legend}>
          {layers.map((layer) => (
            <li key={layer.key} title={layer.label}>
              <i
                className={layer.hatched ? css.hatched : undefined}
                style={{ ['--part' as string]: layer.colour }}
                aria-hidden
              />
              <span>{layer.label}</span>
            </li>
          ))}
        </ul>
      </div>
      {layers.length > 0 ? (
        <BarChart
          label={t(`metric.${state.metric}`)}
          bars={days}
          layers={layers}
          format={format}
          least={state.metric === 'energy' ? 0 : 0.002}
        />
      ) : (
        <div className={css.nothing}>{t('nothingOf')}</div>
      )}
    </section>
  )
}

/** What was used, by session, day, project, device or person, and how much of that was measured. */
export function SessionsUsage({ state, change }: UsageProps) {
  const { t } = useTranslation('usage')
  const query = useMemo(
    () => ({ from: state.from, to: state.to, bucket: 'day' as const, by: state.by, label: state.label }),
    [state.from, state.to, state.by, state.label],
  )
  const report = useQuery({
    queryKey: keys.accounts(query),
    queryFn: ({ signal }) => call('accounts', { query, signal }),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    refetchInterval: 30_000,
  })
  const { data } = report
  const by = report.isPlaceholderData && data ? (groupings.find((g) => g === data.by) ?? state.by) : state.by
  const groups = useMemo(() => groupRows(data?.rows ?? [], by), [data, by])
  const download = () =>
    saveUrl(`slipway-usage-${state.from}-${state.to}.csv`, target('accounts-csv', { query: query }))
  return (
    <Frame
      state={state}
      change={change}
      report={report}
      download={download}
      empty={
        <EmptyState
          icon={ChartColumn}
          title={t('emptyTitle')}
          text={t(state.label ? 'emptyLabel' : 'emptyText', { label: state.label })}
        />
      }
    >
      {(data) => (
        <>
          <Totals report={data} />
          <ChartCard groups={groups} state={{ ...state, by }} change={change} />
          <section className={css.card}>
            <div className={css.cardHead}>
              <Segmented
                aria-label={t('by.title')}
                size="small"
                value={state.by}
                onChange={(next) => change({ by: next })}
                options={groupings.map((value) => ({ value, label: t(`by.${value}`) }))}
              />
              <span className={css.dim}>
                {t('tile.measured')} <Measured sums={sumUp(data.totals)} />
              </span>
            </div>
            <UsageTable groups={groups} by={by} loading={false} />
          </section>
          <Balance totals={data.totals} />
        </>
      )}
    </Frame>
  )
}
