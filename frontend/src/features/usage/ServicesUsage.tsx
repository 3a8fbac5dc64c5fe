import { BrainCircuit } from 'lucide-react'
import { useTranslation } from 'react-i18next'

import { target } from '@/api/client'
import type { ServiceUsage } from '@/api/types.gen'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { saveUrl } from '@/lib/save'
import { digits, formatEnergy, toHours } from '@/lib/share'
import { EmptyState } from '@/ui/EmptyState'
import { Frame, Tile } from './Frame'
import { ServiceTable } from './ServiceTable'
import { energyOf, failedOf, formatWh, serviceRows } from './services'
import css from './usage.module.css'
import { useServiceReport } from './useServiceReport'
import type { UsageProps } from './useUsageState'

function Totals({ total }: { total: ServiceUsage }) {
  const { t } = useTranslation('usage')
  const failed = failedOf(total)
  return (
    <section className={css.tiles} aria-label={t('services.totals')}>
      <Tile
        name={t('services.requests')}
        main={formatCount(total.requests)}
        foot={t('services.failedOf', { count: failed })}
      />
      <Tile
        name={t('services.generated')}
        main={formatCount(total.completionTokens)}
        foot={t('services.readTokens', { tokens: formatCount(total.promptTokens) })}
      />
      <Tile
        name={t('services.firstWord')}
        main={formatFirstWord(total.firstWord.p50Ms)}
        foot={
          total.firstWord.p99Ms > 0
            ? t('services.p99', { time: formatFirstWord(total.firstWord.p99Ms) })
            : t('services.noStream')
        }
      />
      <Tile
        name={t('services.wh')}
        main={formatWh(total.whPerThousandTokens)}
        foot={t('services.energyOf', {
          energy: formatEnergy(energyOf(total)),
          hours: digits(toHours(total.allocGpuMs)),
        })}
      />
    </section>
  )
}

/** What was asked of services, and what their replicas used for that. */
export function ServicesUsage({ state, change }: UsageProps) {
  const { t } = useTranslation('usage')
  const { from, to } = state
  const report = useServiceReport({ from, to, by: 'service' })
  const revisions = useServiceReport({ from, to, by: 'revision' })
  const tokens = useServiceReport({ from, to, by: 'token' })
  const download = () =>
    saveUrl(
      `slipway-services-${from}-${to}.csv`,
      target('service-accounts-csv', { query: { from, to, bucket: 'day' } }),
    )
  return (
    <Frame
      state={state}
      change={change}
      report={report}
      download={download}
      empty={<EmptyState icon={BrainCircuit} title={t('services.emptyTitle')} text={t('services.emptyText')} />}
    >
      {(data) => (
        <>
          <Totals total={data.total} />
          <section className={css.card}>
            <ServiceTable rows={serviceRows(data.rows, revisions.data?.rows ?? [], tokens.data?.rows ?? [])} />
          </section>
        </>
      )}
    </Frame>
  )
}
