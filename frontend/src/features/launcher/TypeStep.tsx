import { Checkbox, DatePicker, Input, InputNumber, Select, Space } from 'antd'
import dayjs from 'dayjs'
import { BrainCircuit, FileTerminal, SquareTerminal } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { SESSION_NAME } from '@/api/rules.gen'
import { now as clockNow } from '@/lib/now'
import { formatRelative } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './launcher.module.css'
import { Card } from './Card'
import { EndCard } from './EndCard'
import { Field } from './Field'
import { IdleCard } from './IdleCard'
import { MachineCard } from './MachineCard'
import { QueueCard } from './QueueCard'
import { TIMEOUT_UNITS } from './queueDraft'
import type { StepProps } from './StepProps'

const TYPES = [
  { type: 'interactive', icon: SquareTerminal },
  { type: 'batch', icon: FileTerminal },
] as const

/** A new start time is this far away, in milliseconds, as whole minutes. */
const SOON = 2 * 60_000

export function TypeStep({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  return (
    <>
      <Card title={t('type.title')}>
        <div className={`${css.choices} ${css.types}`}>
          <div className={css.radios} role="radiogroup" aria-label={t('type.title')}>
            {TYPES.map(({ type, icon: Icon }) => (
              <label key={type} className={`${css.choice} ${draft.type === type ? css.chosen : ''}`}>
                <input
                  type="radio"
                  name="type"
                  value={type}
                  checked={draft.type === type}
                  onChange={() => change({ type })}
                />
                <Icon size={20} strokeWidth={1.75} aria-hidden />
                <span>
                  <span className={css.choiceName}>{t(`type.${type}`)}</span>
                  <span className={css.choiceText}>{t(`type.${type}Text`)}</span>
                </span>
              </label>
            ))}
          </div>
          <Link to="/services/new" className={css.choice ?? ''}>
            <BrainCircuit size={20} strokeWidth={1.75} aria-hidden />
            <span>
              <span className={css.choiceName}>{t('type.inference')}</span>
              <span className={css.choiceText}>{t('type.inferenceText')}</span>
            </span>
          </Link>
        </div>
        <Field label={t('name.label')} note={t('optional')} hint={t('name.hint')} issue={issues.at('name')}>
          {(control) => (
            <Input
              {...control}
              value={draft.name}
              placeholder={t('name.placeholder')}
              spellCheck={false}
              autoComplete="off"
              count={{ show: true, max: SESSION_NAME.max }}
              style={{ maxWidth: 420 }}
              onChange={(event) => change({ name: event.target.value })}
            />
          )}
        </Field>
      </Card>
      <MachineCard draft={draft} issues={issues} change={change} />
      {draft.type === 'batch' ? <BatchCard draft={draft} issues={issues} change={change} /> : null}
      <QueueCard draft={draft} issues={issues} change={change} />
      <IdleCard draft={draft} issues={issues} change={change} />
      <EndCard draft={draft} issues={issues} change={change} />
    </>
  )
}

function BatchCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  return (
    <Card title={t('batch.title')} text={t('batch.text')}>
      <Field label={t('batch.command')} hint={t('batch.commandHint')} issue={issues.at('command')}>
        {(control) => (
          <Input.TextArea
            {...control}
            className={css.mono}
            value={draft.command}
            placeholder={'pip install -r requirements.txt\npython train.py'}
            autoSize={{ minRows: 4, maxRows: 14 }}
            spellCheck={false}
            onChange={(event) => change({ command: event.target.value })}
          />
        )}
      </Field>
      <StartTime draft={draft} issues={issues} change={change} />
      <Timeout draft={draft} issues={issues} change={change} />
    </Card>
  )
}

function StartTime({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const now = useNow(draft.startAt !== null)
  const soon = () => new Date(Math.ceil((clockNow() + SOON) / 60_000) * 60_000).toISOString()
  const hint = draft.startAt ? t('batch.startsIn', { when: formatRelative(draft.startAt, now) }) : undefined
  return (
    <Field
      label={t('batch.start')}
      note={t('optional')}
      hint={hint}
      issue={issues.at('notBefore')}
      aside={
        <Checkbox
          checked={draft.startAt !== null}
          onChange={(event) => change({ startAt: event.target.checked ? soon() : null })}
        >
          {t('batch.startUse')}
        </Checkbox>
      }
    >
      {(control) =>
        draft.startAt === null ? null : (
          <DatePicker
            id={control.id}
            status={control.status}
            showTime
            showNow={false}
            allowClear={false}
            style={{ width: 220 }}
            value={draft.startAt ? dayjs(draft.startAt) : null}
            minDate={dayjs(now)}
            onChange={(value) => change({ startAt: value ? value.toISOString() : '' })}
          />
        )
      }
    </Field>
  )
}

function Timeout({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const { timeout } = draft
  return (
    <Field
      label={t('batch.timeout')}
      note={t('optional')}
      hint={timeout ? t('batch.timeoutHint') : undefined}
      issue={issues.at('timeout')}
      aside={
        <Checkbox
          checked={timeout !== null}
          onChange={(event) => change({ timeout: event.target.checked ? { value: 1, unit: 'h' } : null })}
        >
          {t('batch.timeoutUse')}
        </Checkbox>
      }
    >
      {(control) =>
        timeout === null ? null : (
          <Space.Compact>
            <InputNumber
              {...control}
              style={{ width: 100 }}
              value={timeout.value}
              onChange={(value) => change({ timeout: { ...timeout, value } })}
            />
            <Select
              aria-label={t('batch.timeoutUnit')}
              style={{ width: 120 }}
              value={timeout.unit}
              options={TIMEOUT_UNITS.map((unit) => ({ value: unit, label: t(`unit.${unit}`) }))}
              onChange={(unit) => change({ timeout: { ...timeout, unit } })}
            />
          </Space.Compact>
        )
      }
    </Field>
  )
}
