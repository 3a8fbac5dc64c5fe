import { useQuery } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import {
  ChevronDown,
  ChevronRight,
  CircleCheck,
  CircleDashed,
  CircleX,
  LoaderCircle,
  RotateCw,
  SkipForward,
  type LucideIcon,
} from 'lucide-react'
import { Fragment, useCallback, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Outcome, Phase, Session } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'
import { formatInstant, formatSpan } from '@/lib/time'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import { HistoryBar } from './HistoryBar'
import {
  filterHistory,
  isFiltering,
  noFilter,
  readHistoryFilter,
  writeHistoryFilter,
  type HistoryFilter,
} from './historyFilter'
import css from './SessionDrawer.module.css'

const looks: Record<Outcome, [LucideIcon, string | undefined]> = {
  RUNNING: [LoaderCircle, css.busy],
  SUCCESS: [CircleCheck, css.good],
  FAILURE: [CircleX, css.bad],
  EXPIRED: [CircleX, css.bad],
  GIVE_UP: [CircleX, css.bad],
  NEED_RETRY: [RotateCw, css.warn],
  STALE: [CircleDashed, css.dim],
  SKIPPED: [SkipForward, css.dim],
}

function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  const { t } = useTranslation('session')
  const [Icon, look] = looks[outcome] ?? [CircleDashed, css.dim]
  return (
    <span className={`${css.outcome} ${look}`}>
      <Icon size={13} aria-hidden />
      {t(`outcome.${outcome}`, { defaultValue: outcome })}
    </span>
  )
}

function took(from: string, to: string | undefined): string {
  return to ? formatSpan(Date.parse(to) - Date.parse(from)) : '…'
}

/** When a step started or ended, to the millisecond. */
function Instant({ at }: { at: string | undefined }) {
  if (!at) return <span className={css.dim}>–</span>
  return (
    <time className="num" dateTime={at}>
      {formatInstant(at)}
    </time>
  )
}

function Steps({ phase }: { phase: Phase }) {
  const { t } = useTranslation('session')
  return (
    <div className={css.stepsGrid}>
      <span className={css.dim}>{t('history.step')}</span>
      <span className={css.dim}>{t('history.result')}</span>
      <span className={css.dim}>{t('history.started')}</span>
      <span className={css.dim}>{t('history.ended')}</span>
      <span className={css.dim}>{t('history.took')}</span>
      {phase.steps.map((step, i) => (
        <Fragment key={`${step.step}${i}`}>
          <span className={css.mono}>{step.step}</span>
          <OutcomeBadge outcome={step.result} />
          <Instant at={step.startedAt} />
          <Instant at={step.endedAt} />
          <span className={`${css.dim} num`}>{took(step.startedAt, step.endedAt)}</span>
          {step.message || step.code ? (
            <span className={css.stepMessage}>
              {messageText(step)} {step.code ? <code className={`${css.mono} ${css.dim}`}>{step.code}</code> : null}
            </span>
          ) : null}
        </Fragment>
      ))}
    </div>
  )
}

function PhaseRows({ phase }: { phase: Phase }) {
  const { t } = useTranslation(['session', 'common'])
  const troubled = phase.result !== 'SUCCESS' && phase.result !== 'SKIPPED'
  const [choice, setChoice] = useState<boolean>()
  const open = (choice ?? troubled) && phase.steps.length > 0
  const name = t(`session:phase.${phase.phase}`, { defaultValue: phase.phase })
  const below = open || Boolean(phase.message)
  return (
    <>
      <tr className={below ? css.flat : undefined}>
        <td>
          <button
            type="button"
            title={phase.id}
            className={css.expander}
            aria-expanded={open}
            aria-label={t(open ? 'session:history.collapse' : 'session:history.expand', { phase: name })}
            disabled={phase.steps.length === 0}
            onClick={() => setChoice(!open)}
          >
            {open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
            {name}
          </button>
        </td>
        <td>
          <OutcomeBadge outcome={phase.result} />
        </td>
        <td className={css.change}>
          {t(`common:status.${phase.from}`, { defaultValue: phase.from })}
          <span className={css.arrow}>→</span>
          {t(`common:status.${phase.to}`, { defaultValue: phase.to })}
        </td>
        <td className="num">{phase.attempts}</td>
        <td className={`${css.took} num`}>{took(phase.createdAt, phase.updatedAt)}</td>
        <td>
          <RelativeTime at={phase.createdAt} short />
        </td>
        <td>
          <RelativeTime at={phase.updatedAt} short />
        </td>
      </tr>
      {below ? (
        <tr className={css.steps}>
          <td colSpan={7}>
            {phase.message ? (
              <div className={css.phaseMessage}>
                {messageText(phase)}{' '}
                {phase.code ? <code className={`${css.mono} ${css.dim}`}>{phase.code}</code> : null}
              </div>
            ) : null}
            {open ? <Steps phase={phase} /> : null}
          </td>
        </tr>
      ) : null}
    </>
  )
}

/** The phases a session went through and the steps of each. Phases that did not go well stand open. */
export function HistoryView({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const [params, setParams] = useSearchParams()
  const filter = useMemo(() => readHistoryFilter(params), [params])
  const setFilter = useCallback(
    (next: HistoryFilter) => setParams((old) => writeHistoryFilter(old, next), { replace: true }),
    [setParams],
  )
  const history = useQuery({
    queryKey: keys.history(session.id),
    queryFn: ({ signal }) => call('history', { path: { id: session.id }, signal }),
    staleTime: 2000,
  })
  const shown = useMemo(() => filterHistory(history.data ?? [], filter), [history.data, filter])
  if (history.error && !history.data)
    return <ErrorState problem={asProblem(history.error)} onRetry={() => void history.refetch()} />
  return (
    <div className={css.history} aria-busy={history.isPending}>
      <HistoryBar
        phases={history.data ?? []}
        filter={filter}
        onFilter={setFilter}
        onRefresh={() => void history.refetch()}
        refreshing={history.isFetching}
      />
      {history.isPending ? <Skeleton active /> : null}
      {history.data?.length && shown.length === 0 && isFiltering(filter) ? (
        <div className={css.quiet}>
          {t('history.noMatch')}{' '}
          <Button type="link" size="small" onClick={() => setFilter({ ...noFilter, sort: filter.sort })}>
            {t('history.clear')}
          </Button>
        </div>
      ) : null}
      {history.data?.length === 0 ? <div className={css.quiet}>{t('history.empty')}</div> : null}
      {shown.length > 0 ? (
        <table className={css.grid}>
          <thead>
            <tr>
              <th>{t('history.phase')}</th>
              <th>{t('history.result')}</th>
              <th>{t('history.change')}</th>
              <th>{t('history.attempts')}</th>
              <th>{t('history.took')}</th>
              <th>{t('history.created')}</th>
              <th>{t('history.updated')}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((phase) => (
              <PhaseRows key={phase.id} phase={phase} />
            ))}
          </tbody>
        </table>
      ) : null}
    </div>
  )
}
