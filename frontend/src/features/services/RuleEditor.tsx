import { AutoComplete, Button, InputNumber, Select } from 'antd'
import { CircleAlert, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { MAX_REPLICAS } from '@/api/rules.gen'
import type { RuleState } from '@/api/types.gen'
import { formatSpan } from '@/lib/time'
import { FormField } from './FormField'
import { RuleNow } from './RuleNow'
import css from './rules.module.css'
import {
  fixedMetrics,
  isPercent,
  type RuleDraft,
  type RuleFault,
  ruleFault,
  ruleSources,
  serverMetrics,
  usualCooldown,
  usualWindow,
} from './rules'

/** The fields that a fault is about. */
const wrongFields: Record<RuleFault, string[]> = {
  metric: [],
  threshold: ['up', 'down'],
  order: ['up', 'down'],
  limits: ['min', 'max'],
}

interface RuleEditorProps {
  number: number
  rule: RuleDraft
  /** What it does now, if it is the rule of the service. */
  state?: RuleState | undefined
  /** Whether to tell what is wrong. */
  tried: boolean
  onChange: (change: Partial<RuleDraft>) => void
  onRemove: () => void
}

/** One rule with what it does in plain words. */
export function RuleEditor({ number, rule, state, tried, onChange, onRemove }: RuleEditorProps) {
  const { t } = useTranslation('services')
  const fault = tried ? ruleFault(rule) : undefined
  const name = t('rule.name', { number })
  const amount = (key: 'up' | 'down' | 'step' | 'window' | 'cooldown' | 'min' | 'max', more: object) => (
    <FormField label={t(`rule.${key}`)}>
      {(control) => (
        <InputNumber
          {...control}
          aria-label={t('rule.of', { field: t(`rule.${key}`), name })}
          style={{ width: '100%' }}
          status={fault && wrongFields[fault].includes(key) ? 'error' : ''}
          min={0}
          value={rule[key]}
          onChange={(value) => onChange({ [key]: value })}
          {...more}
        />
      )}
    </FormField>
  )
  const percent = isPercent(rule) ? { suffix: '%' } : {}
  const replicas = { min: 1, max: MAX_REPLICAS, precision: 0 }
  const seconds = { min: 1, precision: 0, suffix: t('rule.seconds') }
  return (
    <li className={css.rule} aria-label={name} data-invalid={fault ? true : undefined}>
      <div className={css.head}>
        <Select
          aria-label={t('rule.of', { field: t('rule.source'), name })}
          className={css.source ?? ''}
          value={rule.source}
          options={ruleSources.map((source) => ({ value: source, label: t(`rule.sources.${source}`) }))}
          onChange={(source) => onChange({ source, metric: source === 'framework' ? '' : fixedMetrics[source][0] })}
        />
        <Metric
          rule={rule}
          wrong={fault === 'metric'}
          label={t('rule.of', { field: t('rule.metric'), name })}
          onChange={onChange}
        />
        <Button
          type="text"
          aria-label={t('rule.remove', { name })}
          title={t('rule.remove', { name })}
          icon={<Trash2 size={15} />}
          onClick={onRemove}
        />
      </div>
      <div className={css.numbers}>
        {amount('up', { placeholder: t('rule.off'), ...percent })}
        {amount('down', { placeholder: t('rule.off'), ...percent })}
        {amount('min', { placeholder: '1', ...replicas })}
        {amount('max', { placeholder: t('rule.noLimit'), ...replicas })}
        {amount('step', { placeholder: '1', ...replicas })}
        {amount('window', { placeholder: String(usualWindow), ...seconds })}
        {amount('cooldown', { placeholder: String(usualCooldown), ...seconds })}
      </div>
      <div className={css.foot}>
        {fault ? (
          <div className={css.fault} role="alert">
            <CircleAlert size={13} aria-hidden />
            <span>{t(`rule.fault.${fault}`)}</span>
          </div>
        ) : (
          <RuleSentence rule={rule} />
        )}
        {state ? <RuleNow state={state} percent={isPercent(rule)} /> : null}
      </div>
    </li>
  )
}

interface MetricProps extends Pick<RuleEditorProps, 'rule' | 'onChange'> {
  label: string
  wrong: boolean
}

function Metric({ rule, label, wrong, onChange }: MetricProps) {
  const { t } = useTranslation('services')
  if (rule.source === 'framework') {
    return (
      <AutoComplete
        aria-label={label}
        className={`${css.metric ?? ''} ${css.mono ?? ''}`}
        status={wrong ? 'error' : ''}
        placeholder={serverMetrics[0]}
        options={serverMetrics.filter((one) => one.includes(rule.metric)).map((value) => ({ value }))}
        value={rule.metric}
        onChange={(metric: string) => onChange({ metric })}
      />
    )
  }
  return (
    <Select
      aria-label={label}
      className={css.metric ?? ''}
      value={rule.metric}
      options={fixedMetrics[rule.source].map((metric) => ({ value: metric, label: t(`rule.metrics.${metric}`) }))}
      onChange={(metric: string) => onChange({ metric })}
    />
  )
}

/** What a rule does, in words. */
function RuleSentence({ rule }: { rule: RuleDraft }) {
  const { t } = useTranslation('services')
  const unit = isPercent(rule) ? '%' : ''
  const count = rule.step ?? 1
  const said: ReactNode[] = []
  if (rule.up !== null) {
    const value = `${rule.up}${unit}`
    said.push(rule.max ? t('rule.addsTo', { value, count, max: rule.max }) : t('rule.adds', { value, count }))
  }
  if (rule.down !== null) {
    const time = formatSpan(((rule.window ?? usualWindow) + (rule.cooldown ?? usualCooldown)) * 1000)
    said.push(t('rule.removes', { value: `${rule.down}${unit}`, time, min: rule.min ?? 1 }))
  }
  return <p className={css.sentence}>{said.join(' ')}</p>
}
