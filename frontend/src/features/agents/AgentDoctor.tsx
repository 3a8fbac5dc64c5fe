import { useQuery } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import { CircleCheck, CircleX, Stethoscope, TriangleAlert, type LucideIcon } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Check } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import { ErrorState } from '@/ui/ErrorState'
import css from './agents.module.css'

const looks: Record<string, [LucideIcon, string | undefined]> = {
  ok: [CircleCheck, css.good],
  warning: [TriangleAlert, css.warn],
  failed: [CircleX, css.bad],
}

function CheckRow({ check }: { check: Check }) {
  const { t } = useTranslation('agents')
  const [Icon, look] = looks[check.result] ?? [TriangleAlert, css.warn]
  return (
    <li className={css.check}>
      <Icon size={15} className={look} aria-hidden />
      <div className={css.checkWords}>
        <b>{check.title}</b>
        <div className={css.small}>{check.text}</div>
        {check.remedy ? (
          <div className={css.remedy}>
            <span>{check.remedy}</span>
            <CopyButton text={check.remedy} label={t('doctor.copy')} />
          </div>
        ) : null}
      </div>
      <span className={`${css.result} ${look ?? ''}`}>{t(`doctor.result.${check.result}`)}</span>
    </li>
  )
}

/** What slipway doctor finds on the agent's machine, asked for when a person wants to know. */
export function AgentDoctor({ name, reached }: { name: string; reached: boolean }) {
  const { t } = useTranslation('agents')
  const [asked, setAsked] = useState(false)
  const doctor = useQuery({
    queryKey: [...keys.doctor, name],
    queryFn: ({ signal }) => call('doctor', { signal, query: { agent: name } }),
    enabled: asked && reached,
    retry: false,
  })
  const run = () => {
    if (asked) void doctor.refetch()
    else setAsked(true)
  }
  return (
    <section className={css.section} aria-label={t('doctor.title')}>
      <div className={css.sectionHead}>
        <h2 className={css.heading}>{t('doctor.title')}</h2>
        <Button
          size="small"
          icon={<Stethoscope size={14} />}
          disabled={!reached}
          loading={doctor.isFetching}
          onClick={run}
        >
          {t(asked ? 'doctor.again' : 'doctor.run')}
        </Button>
      </div>
      {doctor.data ? (
        <ul className={css.checks}>
          {doctor.data.map((check) => (
            <CheckRow key={check.id} check={check} />
          ))}
        </ul>
      ) : doctor.error ? (
        <ErrorState compact problem={asProblem(doctor.error)} />
      ) : doctor.isFetching ? (
        <Skeleton active title={false} paragraph={{ rows: 3 }} />
      ) : (
        <p className={css.small}>{t(reached ? 'doctor.text' : 'doctor.unreached')}</p>
      )}
    </section>
  )
}
