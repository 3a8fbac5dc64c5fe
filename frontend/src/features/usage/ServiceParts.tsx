import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import type { ServiceUsage } from '@/api/types.gen'
import { FigureText } from './FigureText'
import { figures, keyOf } from './services'
import css from './usage.module.css'
import { useServiceReport } from './useServiceReport'

/** A service by its revisions, and by its tokens. */
export function ServiceParts({ usage, from, to }: { usage: ServiceUsage; from: string; to: string }) {
  const { t } = useTranslation('usage')
  const query = { from, to, service: usage.service ?? '', agent: usage.agent ?? '' }
  const revisions = useServiceReport({ ...query, by: 'revision' })
  const tokens = useServiceReport({ ...query, by: 'token' })
  const error = revisions.error ?? tokens.error
  if (error) return <p className={css.dim}>{asProblem(error).message}</p>
  const mine = (rows: ServiceUsage[] = []) => rows.filter((row) => keyOf(row) === keyOf(usage))
  const parts: [string, ServiceUsage, boolean][] = [
    ...mine(revisions.data?.rows).map((row): [string, ServiceUsage, boolean] => [
      t('services.revision', { number: row.revision }),
      row,
      true,
    ]),
    ...mine(tokens.data?.rows).map((row): [string, ServiceUsage, boolean] => [
      row.tokenName || row.token ? t('services.token', { name: row.tokenName || row.token }) : t('services.noToken'),
      row,
      false,
    ]),
  ]
  return (
    <table className={css.parts} aria-label={t('services.parts', { name: usage.service })}>
      <thead>
        <tr>
          <td />
          {figures.map((figure) => (
            <th key={figure.key}>{t(`services.column.${figure.key}`)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {parts.map(([name, row, whole]) => (
          <tr key={`${String(whole)} ${name}`}>
            <th title={name}>{name}</th>
            {figures.map((figure) => (
              <td key={figure.key} className="num">
                {whole || !figure.ofReplicas ? (
                  <FigureText figure={figure} usage={row} />
                ) : (
                  <span className={css.dim} title={t('services.shared')}>
                    –
                  </span>
                )}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
