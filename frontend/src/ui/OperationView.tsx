import { Button } from 'antd'
import {
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleMinus,
  LoaderCircle,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react'
import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { formatBytes, formatRate } from '@/lib/bytes'
import { isRunning, type OperationSubject, type ProgressSubject, type StepSubject } from '@/lib/operation'
import { formatSpan } from '@/lib/time'
import { CopyButton } from './CopyButton'
import { ErrorState } from './ErrorState'
import css from './OperationView.module.css'
import { PromptForm } from './PromptForm'

const icons: Record<string, LucideIcon> = {
  pending: CircleDashed,
  running: LoaderCircle,
  ok: CircleCheck,
  warning: TriangleAlert,
  failed: CircleAlert,
  skipped: CircleMinus,
}

function Step({ step, agent = '' }: { step: StepSubject; agent?: string }) {
  const { t } = useTranslation()
  const Icon = icons[step.state] ?? CircleDashed
  return (
    <li className={css.step} data-step={step.name} data-state={step.state}>
      <Icon size={15} className={`${css.icon} ${css[step.state] ?? ''}`} aria-hidden />
      <div className={css.words}>
        <div className={css.title}>
          {t(`operation.step.${step.name as 'pair'}`, { defaultValue: step.title, agent })}
          <span className="unseen"> {t(`operation.state.${step.state as 'ok'}`, { defaultValue: step.state })}</span>
        </div>
        {step.detail ? <div className={css.detail}>{step.detail}</div> : null}
        {step.remedy ? (
          <div className={css.remedy}>
            <span>{step.remedy}</span>
            <CopyButton text={step.remedy} label={t('operation.copyRemedy')} />
          </div>
        ) : null}
      </div>
    </li>
  )
}

/** Bytes that went over, how fast, and how long the rest takes. */
export function ProgressLine({ progress, label }: { progress: ProgressSubject; label: string }) {
  const { t } = useTranslation()
  const { done, total, rate, left } = progress
  const percent = total > 0 ? Math.min(100, Math.round((done / total) * 100)) : undefined
  const amount =
    total > 0 ? t('pull.bytes', { current: formatBytes(done), total: formatBytes(total) }) : formatBytes(done)
  const texts = [
    amount,
    rate > 0 ? formatRate(rate) : '',
    left === undefined ? '' : t('pull.left', { time: formatSpan(left * 1000) }),
  ].filter(Boolean)
  return (
    <div className={css.progress}>
      <div
        className={css.bar}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
      >
        <div
          className={percent === undefined ? css.wander : css.fill}
          style={percent === undefined ? undefined : { width: `${percent}%` }}
        />
      </div>
      <div className={`${css.amounts} num`}>{texts.join(' · ')}</div>
    </div>
  )
}

/** Kinds of operations whose subject is an image or a folder and no agent. */
const ownSubject = new Set([
  'image-pull',
  'image-commit',
  'image-build',
  'image-remove',
  'file-copy',
  'file-sync',
  'folder-purge',
  'project-clone',
  'session-move',
  'session-copy',
])

/** What an operation is, in words: "Add lab", "Upgrade lab". */
export function useOperationTitle(): (operation: OperationSubject) => string {
  const { t } = useTranslation()
  return ({ kind, subject, agent }) =>
    t(`operation.kind.${kind as 'agent-add'}`, {
      defaultValue: '{{subject}}',
      subject: kind === 'agent-add' || ownSubject.has(kind) ? subject : agent || subject,
      agent,
    })
}

interface OperationViewProps {
  operation: OperationSubject
  onAnswer: (prompt: string, text: string) => Promise<unknown>
  onCancel: () => Promise<unknown>
  /** Scrolls to what goes on now, or is asked. */
  follow?: boolean
}

/**
 * A piece of work as it goes on: its steps with what they found and how to mend it, what it asks, how far its bytes
 * are, and why it failed.
 */
export function OperationView({ operation, onAnswer, onCancel, follow = false }: OperationViewProps) {
  const { t } = useTranslation()
  const title = useOperationTitle()(operation)
  const { steps, progress, prompt, error } = operation
  const running = isRunning(operation)
  // A step that failed says the sentence and what to do.
  const told = error && steps.some((step) => step.state === 'failed' && step.detail === error.message)
  const box = useRef<HTMLElement>(null)
  const now = prompt?.id ?? steps.find((step) => step.state === 'running')?.name ?? operation.state
  useEffect(() => {
    if (!follow || !box.current) return
    box.current.lastElementChild?.scrollIntoView({ block: 'nearest' })
    // Where there is no room for all of it, this counts for more.
    const at = box.current.querySelector('[data-prompt]') ?? box.current.querySelector('[data-state="running"]')
    at?.scrollIntoView({ block: 'nearest' })
  }, [follow, now])
  return (
    <section
      ref={box}
      className={css.operation}
      aria-label={title}
      data-operation={operation.id}
      data-state={operation.state}
    >
      {steps.length > 0 || running ? (
        <ol className={css.steps} aria-live="polite">
          {steps.map((step) => (
            <Step key={step.name} step={step} agent={operation.agent} />
          ))}
          {steps.length === 0 && !prompt ? (
            <Step step={{ name: 'begin', title: t('operation.begins'), state: 'running' }} />
          ) : null}
        </ol>
      ) : null}
      {operation.log ? (
        <pre className={css.log} tabIndex={0} aria-label={t('operation.log')}>
          {operation.log}
        </pre>
      ) : null}
      {running && progress ? <ProgressLine progress={progress} label={title} /> : null}
      {running && prompt ? (
        <PromptForm key={prompt.id} prompt={prompt} onAnswer={(text) => onAnswer(prompt.id, text)} />
      ) : null}
      {told ? <code className={css.code}>{error.code}</code> : error ? <ErrorState compact problem={error} /> : null}
      {operation.state === 'cancelled' ? <div className={css.ended}>{t('operation.state.cancelled')}</div> : null}
      {running ? (
        <div className={css.foot}>
          <Button size="small" onClick={() => void onCancel()}>
            {t('operation.cancel')}
          </Button>
        </div>
      ) : null}
    </section>
  )
}
