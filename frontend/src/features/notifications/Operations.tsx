import { CircleAlert, CircleCheck, CircleMinus, LoaderCircle, type LucideIcon } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useOperations } from '@/api/hooks'
import type { Operation } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { isRunning } from '@/lib/operation'
import { messageText } from '@/lib/phrases'
import { OperationView, ProgressLine, useOperationTitle } from '@/ui/OperationView'
import { RelativeTime } from '@/ui/Times'
import css from './notifications.module.css'

/** How many operations that have ended are listed. */
const endedShown = 5

const icons: Record<string, LucideIcon> = {
  running: LoaderCircle,
  waiting: LoaderCircle,
  done: CircleCheck,
  failed: CircleAlert,
  cancelled: CircleMinus,
}

function OperationRow({ operation }: { operation: Operation }) {
  const { t } = useTranslation()
  const title = useOperationTitle()(operation)
  const actions = useOperationActions(operation.id)
  const running = isRunning(operation)
  // What asks something shows it without a click.
  const [opened, setOpened] = useState<boolean | undefined>()
  const open = opened ?? operation.state === 'waiting'
  const Icon = icons[operation.state] ?? CircleMinus
  const step = operation.steps.findLast((s) => s.state === 'running')
  return (
    <li className={css.work} data-operation={operation.id}>
      <button type="button" className={css.workHead} aria-expanded={open} onClick={() => setOpened(!open)}>
        <Icon size={14} aria-hidden className={`${css.workIcon} ${css[operation.state] ?? ''}`} />
        <span className={css.rowName}>{title}</span>
        <span className={css.workState}>{t(`operation.state.${operation.state as 'done'}`)}</span>
        <span className={css.rowTime}>
          <RelativeTime at={operation.endedAt ?? operation.startedAt} short />
        </span>
      </button>
      {open ? (
        <div className={css.workBody}>
          <OperationView operation={operation} {...actions} />
        </div>
      ) : running && operation.progress ? (
        <div className={css.workBody}>
          <ProgressLine progress={operation.progress} label={title} />
        </div>
      ) : running && step ? (
        <div className={`${css.text} ${css.workBody}`}>
          {t(`operation.step.${step.name as 'pair'}`, { defaultValue: step.title })}
        </div>
      ) : operation.error ? (
        <div className={`${css.text} ${css.workBody}`}>{messageText(operation.error)}</div>
      ) : null}
    </li>
  )
}

/** Long pieces of work: those under way, which can be answered and cancelled, and the last that have ended. */
export function Operations() {
  const { t } = useTranslation('notifications')
  const all = useOperations().data ?? []
  const shown = [...all.filter(isRunning), ...all.filter((o) => !isRunning(o)).slice(0, endedShown)]
  if (shown.length === 0) return null
  return (
    <section aria-label={t('operations')}>
      <h3 className={css.section}>{t('operations')}</h3>
      <ul className={css.list}>
        {shown.map((operation) => (
          <OperationRow key={operation.id} operation={operation} />
        ))}
      </ul>
      <h3 className={css.section}>{t('sessions')}</h3>
    </section>
  )
}
