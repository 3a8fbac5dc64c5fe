import type { UseQueryResult } from '@tanstack/react-query'
import { Radio } from 'antd'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import type { BuildChoice, BuildPlace } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { whyText } from '@/lib/phrases'
import { formatSpan } from '@/lib/time'
import { ErrorState } from '@/ui/ErrorState'
import css from './folders.module.css'

interface BuildPlacesProps {
  /** Whose machine is to have the image. */
  agent: string
  choices: UseQueryResult<BuildChoice[]>
  value: BuildPlace | undefined
  onChange: (place: BuildPlace) => void
}

/** Where the image of a project is built for another machine, and what each place costs. */
export function BuildPlaces({ agent, choices, value, onChange }: BuildPlacesProps) {
  const { t } = useTranslation('folders')
  return (
    <fieldset className={css.choice}>
      <legend>{t('project.where')}</legend>
      {choices.isError ? (
        <ErrorState compact problem={asProblem(choices.error)} onRetry={() => void choices.refetch()} />
      ) : choices.data ? (
        <Radio.Group
          className={css.places}
          value={value}
          onChange={(event) => onChange(event.target.value as BuildPlace)}
        >
          {choices.data.map((one) => (
            <Radio key={one.where} value={one.where} disabled={Boolean(one.why)}>
              {t(`project.place.${one.where || 'there'}`, { agent })}
              <div className={css.hint}>
                {one.why ? whyText({ said: [one.why] }) : <Cost agent={agent} choice={one} />}
              </div>
            </Radio>
          ))}
        </Radio.Group>
      ) : (
        <span className={css.hint}>{t('project.looking')}</span>
      )}
    </fieldset>
  )
}

function Cost({ agent, choice: { where, bytes, more, seconds } }: { agent: string; choice: BuildChoice }) {
  const { t } = useTranslation('folders')
  const time = seconds === undefined ? '' : formatSpan(Math.max(seconds, 1) * 1000)
  const sends = { agent, bytes: formatBytes(bytes), time }
  return (
    <>
      {t(`project.cost.${where || 'there'}`, { agent })}{' '}
      {more ? t('project.baseUnknown', sends) : bytes > 0 ? t(time ? 'project.baseTime' : 'project.base', sends) : null}
    </>
  )
}
