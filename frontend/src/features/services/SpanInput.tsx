import { InputNumber, Select, Space } from 'antd'
import { useTranslation } from 'react-i18next'
import { type Span, spanUnits } from './span'
import type { Control } from './FormField'

interface SpanInputProps {
  control: Partial<Control>
  label: string
  span: Span
  disabled?: boolean
  onChange: (span: Span) => void
}

/** A length of time: a number and its unit. */
export function SpanInput({ control, label, span, disabled = false, onChange }: SpanInputProps) {
  const { t } = useTranslation('services')
  return (
    <Space.Compact>
      <InputNumber
        {...control}
        aria-label={label}
        disabled={disabled}
        style={{ width: 84 }}
        min={1}
        precision={0}
        value={span.value}
        onChange={(value) => onChange({ ...span, value })}
      />
      <Select
        aria-label={t('unit.of', { name: label })}
        disabled={disabled}
        style={{ width: 104 }}
        value={span.unit}
        options={spanUnits.map((unit) => ({ value: unit, label: t(`unit.${unit}`) }))}
        onChange={(unit) => onChange({ ...span, unit })}
      />
    </Space.Compact>
  )
}
