import { useTranslation } from 'react-i18next'
import type { Account } from '@/api/types.gen'
import { digits, formatEnergy, toHours } from '@/lib/share'
import { StackBar } from '@/ui/StackBar'
import { foreignColour, partColour, reservedColour } from '@/ui/palette'
import { addUse, noUse, sumUp } from './accounts'
import css from './usage.module.css'

const colours: Record<Account['kind'], string> = {
  session: partColour(0),
  other: foreignColour,
  idle: reservedColour,
  unattributed: partColour(1),
}

/**
 * The books: sessions, other processes, idle devices and what could not be attributed make up what the devices
 * counted.
 */
export function Balance({ totals }: { totals: readonly Account[] }) {
  const { t } = useTranslation('usage')
  const all = sumUp(totals)
  if (all.energy === 0 && all.busyGpuMs === 0) return null
  const parts = totals.map((row) => ({ row, sums: addUse(noUse, row) }))
  return (
    <section className={css.card} aria-label={t('balance.title')}>
      <div className={css.cardHead}>
        <h2>{t('balance.title')}</h2>
        <span className={css.dim}>{t('balance.text')}</span>
      </div>
      <StackBar
        label={t('balance.title')}
        height={12}
        total={all.energy}
        parts={parts.map(({ row, sums }) => ({
          key: row.kind,
          label: `${t(`kind.${row.kind}`)}: ${formatEnergy(sums.energy)}`,
          value: sums.energy,
          colour: colours[row.kind],
          hatched: row.kind === 'other',
        }))}
      />
      <table className={css.balance}>
        <thead>
          <tr>
            <td />
            <th>{t('metric.energy')}</th>
            <th>{t('metric.busy')}</th>
            <th>{t('column.vram')}</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ row, sums }) => (
            <tr key={row.kind}>
              <td>
                <i
                  className={row.kind === 'other' ? css.hatched : css.solid}
                  style={{ ['--part' as string]: colours[row.kind] }}
                  aria-hidden
                />{' '}
                {t(`kind.${row.kind}`)}
              </td>
              <td className="num">{formatEnergy(sums.energy)}</td>
              <td className="num">{sums.busyGpuMs > 0 ? `${digits(toHours(sums.busyGpuMs))} h` : '–'}</td>
              <td className="num">{sums.vramMiBMs > 0 ? `${digits(toHours(sums.vramMiBMs) / 1024)} GiB·h` : '–'}</td>
            </tr>
          ))}
          <tr>
            <th>{t('balance.all')}</th>
            <th className="num">{formatEnergy(all.energy)}</th>
            <th className="num">{digits(toHours(all.busyGpuMs))} h</th>
            <th className="num">{digits(toHours(all.vramMiBMs) / 1024)} GiB·h</th>
          </tr>
        </tbody>
      </table>
    </section>
  )
}
