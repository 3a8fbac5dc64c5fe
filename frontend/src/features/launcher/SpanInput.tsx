import { InputNumber, Select, Space } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Control } from './Field'
import { type Span, TIMEOUT_UNITS } from './queueDraft'

interface SpanInputProps {
  control: Control
  label: string
  span: Span
  onChange: (span: Span) => void
}

/** A length of time: a number box and its unit. */
export function SpanInput({ control, label, span, onChange }: SpanInputProps) {
  const { t } = useTranslation('launcher')
  return (
    <Space.Compact>
      <InputNumber
        {...control}
        style={{ width: 90 }}
        value={span.value}
        onChange={(value) => onChange({ ...span, value })}
      />
      <Select
        aria-label={t('resources.unitOf', { name: label })}
        style={{ width: 110 }}
        value={span.unit}
        options={TIMEOUT_UNITS.map((unit) => ({ value: unit, label: t(`unit.${unit}`) }))}
        onChange={(unit) => onChange({ ...span, unit })}
      />
    </Space.Compact>
  )
}
