import { useQuery } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import { CircleCheck, CircleX, RotateCw, TriangleAlert, type LucideIcon } from 'lucide-react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Check } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import { ErrorState } from '@/ui/ErrorState'
import css from './settings.module.css'

const looks: Record<Check['result'], [LucideIcon, string | undefined]> = {
  ok: [CircleCheck, css.ok],
  warning: [TriangleAlert, css.warning],
  failed: [CircleX, css.failed],
}

function CheckRow({ check }: { check: Check }) {
  const { t } = useTranslation('settings')
  const [Icon, look] = looks[check.result] ?? [TriangleAlert, css.warning]
  return (
    <div className={css.check}>
      <Icon size={16} className={look} aria-hidden />
      <div className={css.words}>
        <div className={css.label}>{check.title}</div>
        <div className={css.text}>{check.text}</div>
        {check.remedy ? (
          <div className={css.remedy}>
            <span>{check.remedy}</span>
            <CopyButton text={check.remedy} label={t('checks.copy')} />
          </div>
        ) : null}
      </div>
      <span className={`${css.result} ${look}`}>{t(`checks.result.${check.result}`)}</span>
    </div>
  )
}

/** What slipway doctor finds. */
export function useDoctor() {
  return useQuery({ queryKey: keys.doctor, queryFn: ({ signal }) => call('doctor', { signal }) })
}

/** The same, with the remedy of each trouble. */
export function Checks() {
  const { t } = useTranslation('settings')
  const doctor = useDoctor()
  return (
    <section className={css.section}>
      <div className={css.sectionHead}>
        <h2>{t('section.checks')}</h2>
        <Button
          size="small"
          type="text"
          icon={<RotateCw size={13} />}
          loading={doctor.isFetching}
          onClick={() => void doctor.refetch()}
        >
          {t('checks.again')}
        </Button>
      </div>
      <div className={css.card}>
        {doctor.error && !doctor.data ? (
          <ErrorState compact problem={asProblem(doctor.error)} onRetry={() => void doctor.refetch()} />
        ) : null}
        {doctor.isPending ? <Skeleton active className={css.pad ?? ''} paragraph={{ rows: 3 }} title={false} /> : null}
        {doctor.data?.map((check) => (
          <CheckRow key={check.id} check={check} />
        ))}
      </div>
    </section>
  )
}
