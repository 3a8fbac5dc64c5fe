import { useTranslation } from 'react-i18next'
import { useDevices, useSessionBook } from '@/api/hooks'
import { LevelText } from '@/ui/LevelBadge'
import css from './accelerator.module.css'
import { offerOf, totalOf } from './accelerator'
import { DeviceMap } from './DeviceMap'
import type { Draft } from './draft'
import { METRICS, writeSpan } from './queueDraft'
import type { Judgement } from './useJudgement'

/** How the session waits, in one line. */
export function QueueWords({ draft }: { draft: Draft }) {
  const { t } = useTranslation('launcher')
  const book = useSessionBook().data
  const names = draft.after.map((id) => book?.[id]?.name ?? id)
  const words = [
    t('queue.priorityIs', { priority: draft.priority ?? '–' }),
    names.length > 0 ? t('queue.afterIs', { names: names.join(', ') }) : '',
    draft.pendingTimeout ? t('queue.pendingIs', { time: writeSpan(draft.pendingTimeout) || '–' }) : '',
    draft.label.trim() ? t('queue.labelIs', { label: draft.label.trim() }) : '',
  ]
  return <>{words.filter(Boolean).join(' · ')}</>
}

/** When it is reclaimed, in one line. */
export function IdleWords({ draft }: { draft: Draft }) {
  const { t } = useTranslation(['launcher', 'common'])
  const { idle } = draft
  if (!idle) return <span className={css.quiet}>{t('launcher:idle.asMachine')}</span>
  const { use } = idle
  const thresholds = use
    ? METRICS.filter((name) => use[name] !== null).map((name) => `${t(`common:idle.metric.${name}`)} < ${use[name]} %`)
    : []
  const words = [
    idle.lifetime ? t('launcher:idle.lifetimeIs', { time: writeSpan(idle.lifetime) || '–' }) : '',
    idle.network && draft.type !== 'batch'
      ? t('launcher:idle.networkIs', { time: writeSpan(idle.network) || '–' })
      : '',
    use
      ? t('launcher:idle.useIs', {
          metrics: thresholds.join(use.any ? ` ${t('launcher:idle.or')} ` : ` ${t('launcher:idle.and')} `),
          time: writeSpan(use.window) || '–',
        })
      : '',
  ].filter(Boolean)
  return <>{words.length > 0 ? words.join(' · ') : t('launcher:idle.nothing')}</>
}

/** What is asked of devices, where it would land, and how it is kept. */
export function AcceleratorFacts({ draft, judgement }: { draft: Draft; judgement: Judgement }) {
  const boards = useDevices().data
  const offer = offerOf(boards ?? [], draft.agent)
  const preview = judgement.preview.data
  const landing = new Set(preview?.placements.map((p) => p.device))
  const total = totalOf(draft.accelerator, 1)
  return (
    <>
      <div>{draft.accelerator.mode === 'memory' || draft.accelerator.mode === 'mig' ? total : `${total} GPU`}</div>
      {preview && landing.size > 0 ? (
        <DeviceMap
          boards={offer.boards.map((board) => ({
            ...board,
            devices: board.devices.filter((d) => landing.has(d.uuid)),
          }))}
          placements={preview.placements}
          current={judgement.current}
        />
      ) : null}
      {preview?.enforcement ? (
        <LevelText
          level={preview.enforcement}
          whole={preview.placements.length > 0 && preview.placements.every((p) => p.whole)}
        />
      ) : null}
    </>
  )
}
