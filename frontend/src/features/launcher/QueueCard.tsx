import { Checkbox, Input, InputNumber, Select } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useSessionBook } from '@/api/hooks'
import { DEFAULT_PRIORITY, MAX_AFTER, MAX_PRIORITY } from '@/api/rules.gen'
import { isLive } from '@/lib/status'
import { StatusBadge } from '@/ui/StatusBadge'
import css from './accelerator.module.css'
import { Card } from './Card'
import { Field } from './Field'
import launcher from './launcher.module.css'
import { SpanInput } from './SpanInput'
import type { StepProps } from './StepProps'
import { useDraftLacks } from './useDraftLacks'

/** How a session waits for its turn, and under which project it is counted. */
export function QueueCard(props: StepProps) {
  const { t } = useTranslation('launcher')
  const { draft, issues, change } = props
  const lacks = useDraftLacks(draft)('raise-priority')
  return (
    <Card title={t('queue.title')} text={t('queue.text')}>
      <div className={css.grid}>
        <Field label={t('queue.priority')} hint={lacks || t('queue.priorityHint')} issue={issues.at('priority')}>
          {(control) => (
            <InputNumber
              {...control}
              style={{ width: 120 }}
              min={0}
              max={lacks ? DEFAULT_PRIORITY : MAX_PRIORITY}
              value={draft.priority}
              onChange={(priority) => change({ priority })}
            />
          )}
        </Field>
        <Field label={t('queue.label')} note={t('optional')} hint={t('queue.labelHint')} issue={issues.at('label')}>
          {(control) => (
            <Input
              {...control}
              value={draft.label}
              spellCheck={false}
              autoComplete="off"
              placeholder={t('queue.labelPlaceholder')}
              onChange={(event) => change({ label: event.target.value })}
            />
          )}
        </Field>
      </div>
      <After {...props} />
      <Field
        label={t('queue.pending')}
        note={t('optional')}
        hint={draft.pendingTimeout ? t('queue.pendingHint') : undefined}
        issue={issues.at('pendingTimeout')}
        aside={
          <Checkbox
            checked={draft.pendingTimeout !== null}
            onChange={(event) => change({ pendingTimeout: event.target.checked ? { value: 2, unit: 'h' } : null })}
          >
            {t('queue.pendingUse')}
          </Checkbox>
        }
      >
        {(control) =>
          draft.pendingTimeout ? (
            <SpanInput
              control={control}
              label={t('queue.pending')}
              span={draft.pendingTimeout}
              onChange={(pendingTimeout) => change({ pendingTimeout })}
            />
          ) : null
        }
      </Field>
    </Card>
  )
}

/** The sessions that must end in success first, chosen among those that live. */
function After({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const book = useSessionBook().data
  const live = useMemo(() => Object.values(book ?? {}).filter((s) => isLive(s.status)), [book])
  const options = live.map((session) => ({
    // The history and recipes name sessions where the launcher has their ids.
    value: draft.after.includes(session.name) ? session.name : session.id,
    name: session.name,
    label: (
      <span className={launcher.option}>
        <span className={launcher.optionName}>{session.name}</span>
        <StatusBadge status={session.status} />
      </span>
    ),
  }))
  const issue = issues.at('after') ?? draft.after.map((_, i) => issues.at(`after[${i}]`)).find(Boolean)
  return (
    <Field label={t('queue.after')} note={t('optional')} hint={t('queue.afterHint')} issue={issue}>
      {(control) => (
        <Select
          {...control}
          mode="multiple"
          maxCount={MAX_AFTER}
          style={{ width: '100%' }}
          placeholder={t(live.length > 0 ? 'queue.afterPlaceholder' : 'queue.afterNone')}
          value={draft.after}
          options={options}
          optionLabelProp="name"
          optionFilterProp="name"
          onChange={(after: string[]) => change({ after })}
        />
      )}
    </Field>
  )
}
