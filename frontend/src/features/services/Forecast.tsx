import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { CloudDownload, LoaderCircle, Replace, TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { useOnlyMachine } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { DeployRequest, Preview, Service, Spec } from '@/api/types.gen'
import { hintText, messageText } from '@/lib/phrases'
import { useSettled } from '@/lib/useSettled'
import { Forecasts } from '@/ui/Forecasts'
import { OutlookLine } from '@/ui/OutlookLine'
import css from './form.module.css'

/** What happens now changes as sessions come and go: it is asked again this often, in milliseconds. */
const AGAIN = 5_000

interface ForecastProps {
  /** What would be sent, without a fault that is known. */
  request: DeployRequest
  /** The service that would change. */
  existing: Service | undefined
}

/** What would happen if the service were deployed now: which replicas start, what they wait for, what is downloaded. */
export function Forecast({ request, existing }: ForecastProps) {
  const { t } = useTranslation(['services', 'launcher'])
  const replacing = existing !== undefined && existing.live.length > 0
  // An update starts one replica beside the old ones.
  const count = replacing ? 1 : Math.min(request.replicas, 10)
  const settled = useSettled(JSON.stringify(request.spec))
  const preview = useQuery({
    queryKey: keys.preview(settled, '', count),
    queryFn: ({ signal }) => {
      const body: Spec = JSON.parse(settled)
      return call('preview', { body, query: { owner: '', count }, signal })
    },
    enabled: count > 0,
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN,
    staleTime: 1000,
    gcTime: 60_000,
    retry: false,
  })
  if (count === 0) return null
  return (
    <section className={css.forecast} aria-label={t('launcher:outlook.title')} aria-live="polite">
      <h2 className={css.cardTitle}>{t('launcher:outlook.title')}</h2>
      {preview.isError ? (
        <OutlookLine icon={TriangleAlert} kind="slow" title={t('launcher:outlook.unknown')}>
          {messageText(asProblem(preview.error))} {hintText(asProblem(preview.error))}
        </OutlookLine>
      ) : preview.data ? (
        <Told preview={preview.data} count={count} replacing={replacing} />
      ) : (
        <OutlookLine icon={LoaderCircle} kind="busy" title={t('launcher:outlook.asking')} />
      )}
    </section>
  )
}

function Told({ preview, count, replacing }: { preview: Preview; count: number; replacing: boolean }) {
  const { t } = useTranslation(['services', 'launcher'])
  const only = useOnlyMachine()
  const error = preview.errors[0]
  if (error) {
    return (
      <OutlookLine icon={TriangleAlert} kind="bad" title={t('services:forecast.refused')}>
        {messageText(error)} {hintText(error)}
      </OutlookLine>
    )
  }
  const full = preview.forecasts.some(({ wait }) => wait !== undefined)
  return (
    <>
      {replacing ? (
        <OutlookLine icon={Replace} kind={full ? 'slow' : 'good'} title={t('services:forecast.update')}>
          {t(full ? 'services:forecast.noRoom' : 'services:forecast.beside')}
        </OutlookLine>
      ) : null}
      {replacing && !full ? null : <Forecasts forecasts={preview.forecasts} count={count} only={only} />}
      {preview.image ? null : (
        <OutlookLine icon={CloudDownload} kind="slow" title={t('launcher:outlook.pulls')}>
          {t('launcher:outlook.pullsText')}
        </OutlookLine>
      )}
    </>
  )
}
