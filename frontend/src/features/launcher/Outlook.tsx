import { CircleAlert, CircleDashed, CloudDownload, LoaderCircle, TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useMachines, useOnlyMachine } from '@/api/hooks'
import { formatBytes } from '@/lib/bytes'
import { hintText, messageText } from '@/lib/phrases'
import { Forecasts } from '@/ui/Forecasts'
import { OutlookLine as Line } from '@/ui/OutlookLine'
import css from './launcher.module.css'
import type { ImageState } from './images'
import type { Issues } from './issueText'
import type { Judgement } from './useJudgement'

interface OutlookProps {
  judgement: Judgement
  shown: Issues
  image: ImageState
  /** How many sessions would be launched. */
  count: number
}

/** What would happen if it were launched now: starts at once, waits for something, pulls something. */
export function Outlook({ judgement, shown, image, count }: OutlookProps) {
  const { t } = useTranslation('launcher')
  const { errors, preview, current } = judgement
  const only = useOnlyMachine()
  const machines = useMachines().data ?? []
  if (errors.length > 0 && !shown.all.some((issue) => issue.severity === 'error')) {
    return (
      <Line icon={CircleDashed} kind="busy" title={t('outlook.incomplete')}>
        {t('outlook.missing', { count: errors.length })}
      </Line>
    )
  }
  if (errors.length > 0) {
    return (
      <Line icon={CircleAlert} kind="bad" title={t('outlook.errors', { count: errors.length })}>
        {t('outlook.errorsText')}
      </Line>
    )
  }
  if (preview.isError) {
    const problem = asProblem(preview.error)
    return (
      <Line icon={TriangleAlert} kind="slow" title={t('outlook.unknown')}>
        {messageText(problem)} {hintText(problem)} {t('outlook.unchecked')}
      </Line>
    )
  }
  const told = preview.data
  if (!told) return <Line icon={LoaderCircle} kind="busy" title={t('outlook.asking')} />
  const pulls = !told.image && !image.installed
  const cluster = machines.some((m) => m.agent === told.agent && m.slurm)
  const size = image.size > 0 ? formatBytes(image.size) : ''
  return (
    <div className={current ? undefined : css.stale} aria-live="polite">
      <Forecasts forecasts={told.forecasts} count={count} only={only} />
      {told.forecasts.length < count ? (
        <Line icon={CircleDashed} kind="busy" title={t('outlook.untold', { count: count - told.forecasts.length })}>
          {t('outlook.untoldText', { agent: told.agent })}
        </Line>
      ) : null}
      {pulls && cluster ? (
        <Line icon={TriangleAlert} kind="slow" title={t('slurm.noImage')}>
          {t('slurm.noImageText')}
        </Line>
      ) : pulls ? (
        <Line
          icon={CloudDownload}
          kind="slow"
          title={size ? t('outlook.pullsSize', { amount: size }) : t('outlook.pulls')}
        >
          {t('outlook.pullsText')}
        </Line>
      ) : null}
    </div>
  )
}
