import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Account, Session } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { digits, formatEnergy, formatPercent, isUseKnown, splitUse, toHours } from '@/lib/share'
import { isLive } from '@/lib/status'
import { ErrorState } from '@/ui/ErrorState'
import { inOrder } from './Kernels'
import css from './SessionDrawer.module.css'

const hours = (ms: number) => `${digits(toHours(ms))} h`

/** The rows of one session: those of its devices, and the one that counts CPU. */
function ownRows(rows: readonly Account[], session: string): Account[] {
  return rows.filter((row) => row.kind === 'session' && row.session === session)
}

/** How much of the device time of an account was measured, in percent; undefined where there was none. */
function measured(row: Account): number | undefined {
  const all = row.coveredMs + row.estimatedMs + row.gapMs
  return all > 0 ? (row.coveredMs / all) * 100 : undefined
}

/** Busy time within what was allocated, and apart from it what came on top: time that others left free. */
function Busy({ used, allocated, part }: { used: number; allocated: number; part?: boolean }) {
  const { t } = useTranslation('session')
  const { within, above } = splitUse(used, allocated)
  return (
    <>
      {hours(within)}
      {part && allocated > 0 ? <span className={css.dim}> {formatPercent((within / allocated) * 100)}</span> : null}
      {above >= 1000 ? (
        <span className={css.dim} title={t('accounts.above', { amount: hours(above) })}>
          {' '}
          + {hours(above)}
        </span>
      ) : null}
    </>
  )
}

/** What a session has used from its start on: of CPUs, and of each device. */
export function AccountsSection({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const live = isLive(session.status)
  const query = {
    from: session.startedAt ?? session.createdAt,
    ...(session.terminatedAt ? { to: session.terminatedAt } : {}),
  }
  const report = useQuery({
    queryKey: keys.accounts({ session: session.id, ...query }),
    queryFn: ({ signal }) => call('accounts', { query, signal }),
    enabled: session.startedAt !== undefined,
    staleTime: 5_000,
    refetchInterval: live ? 10_000 : false,
  })
  if (!session.startedAt) return null
  const rows = ownRows(report.data?.rows ?? [], session.id)
  const cpu = rows.reduce((sum, row) => ({ busy: sum.busy + row.cpuMs, granted: sum.granted + row.allocCpuMs }), {
    busy: 0,
    granted: 0,
  })
  const devices = inOrder(
    rows.filter((row) => row.device),
    (row) => row.deviceName ?? '',
  )
  return (
    <section aria-busy={report.isPending}>
      <div className={css.sectionHead}>
        <h3>{t('section.accounts')}</h3>
      </div>
      {report.error && !report.data ? (
        <ErrorState compact problem={asProblem(report.error)} onRetry={() => void report.refetch()} />
      ) : null}
      {report.data ? (
        <dl className={css.facts}>
          <dt>{t('accounts.cpuGranted')}</dt>
          <dd className="num">{hours(cpu.granted)}</dd>
          <dt>{t('accounts.cpuBusy')}</dt>
          <dd className="num">
            <Busy used={cpu.busy} allocated={cpu.granted} part />
          </dd>
        </dl>
      ) : null}
      {devices.length > 0 ? (
        <table className={`${css.grid} ${css.numbers}`}>
          <thead>
            <tr>
              <th>{t('accounts.device')}</th>
              <th>{t('accounts.granted')}</th>
              <th>{t('accounts.busy')}</th>
              <th>{t('accounts.vram')}</th>
              <th>{t('accounts.peak')}</th>
              <th>{t('accounts.energy')}</th>
              <th>{t('accounts.measured')}</th>
            </tr>
          </thead>
          <tbody>
            {devices.map((row) => {
              const part = measured(row)
              const granted = (
                <>
                  <td title={row.device}>{row.deviceName || row.device}</td>
                  <td className="num">{hours(row.allocGpuMs)}</td>
                </>
              )
              if (!isUseKnown(row))
                return (
                  <tr key={row.device}>
                    {granted}
                    <td className={css.dim} colSpan={5}>
                      {t('accounts.unmeasured')}
                    </td>
                  </tr>
                )
              return (
                <tr key={row.device}>
                  {granted}
                  <td className="num">
                    <Busy used={row.busyGpuMs} allocated={row.allocGpuMs} />
                  </td>
                  <td className="num">{digits(toHours(row.vramMiBMs) / 1024)} GiB·h</td>
                  <td className="num">{formatBytes(row.vramPeak)}</td>
                  <td
                    className="num"
                    title={t('accounts.energyOf', {
                      work: formatEnergy(row.energyDynamic),
                      idle: formatEnergy(row.energyIdle),
                    })}
                  >
                    {formatEnergy(row.energyDynamic + row.energyIdle)}
                  </td>
                  <td className="num">{part === undefined ? '–' : formatPercent(part)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      ) : null}
    </section>
  )
}
