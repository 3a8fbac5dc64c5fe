import { InputNumber, Select, Space } from 'antd'
import { useTranslation } from 'react-i18next'
import { type Amount, AMOUNT_UNITS, convertAmount } from './amount'
import type { Control } from './Field'

interface AmountInputProps {
  control: Control
  label: string
  amount: Amount
  onChange: (amount: Amount) => void
}

const UNIT_NAMES = { m: 'MiB', g: 'GiB', t: 'TiB' } as const

/** An amount of memory: a number box and its unit. Another unit keeps the amount. */
export function AmountInput({ control, label, amount, onChange }: AmountInputProps) {
  const { t } = useTranslation('launcher')
  const step = amount.unit === 'm' ? 64 : 0.5
  return (
    <Space.Compact>
      <InputNumber
        {...control}
        aria-label={label}
        style={{ width: 96 }}
        min={0}
        step={step}
        value={amount.value}
        onChange={(value) => onChange({ ...amount, value })}
      />
      <Select
        aria-label={t('resources.unitOf', { name: label })}
        style={{ width: 76 }}
        value={amount.unit}
        options={AMOUNT_UNITS.map((unit) => ({ value: unit, label: UNIT_NAMES[unit] }))}
        onChange={(unit) => onChange(convertAmount(amount, unit))}
      />
    </Space.Compact>
  )
}
