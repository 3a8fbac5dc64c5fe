import { DatePicker, Input, Segmented } from 'antd'
import dayjs from 'dayjs'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import css from './usage.module.css'
import { spans, type UsageProps } from './useUsageState'

function LabelField({ label, onLabel }: { label: string; onLabel: (label: string) => void }) {
  const { t } = useTranslation('usage')
  const [text, setText] = useState(label)
  useEffect(() => setText(label), [label])
  return (
    <Input
      className={css.label ?? ''}
      allowClear
      aria-label={t('labelField')}
      placeholder={t('labelField')}
      value={text}
      onChange={(e) => {
        setText(e.target.value)
        if (e.target.value === '') onLabel('')
      }}
      onPressEnter={() => onLabel(text.trim())}
      onBlur={() => text.trim() !== label && onLabel(text.trim())}
    />
  )
}

/** The time range, and the label of the sessions that count. */
export function Controls({ state, change }: UsageProps) {
  const { t } = useTranslation('usage')
  return (
    <div className={css.controls}>
      <Segmented
        aria-label={t('span.label')}
        value={state.span}
        onChange={(span) => span !== 'custom' && change({ span })}
        options={[
          ...spans.map((value) => ({ value, label: t(`span.${value}`) })),
          ...(state.span === 'custom' ? [{ value: 'custom' as const, label: t('span.custom') }] : []),
        ]}
      />
      <DatePicker.RangePicker
        aria-label={t('span.days')}
        allowClear={false}
        style={{ width: 240 }}
        maxDate={dayjs()}
        value={[dayjs(state.from), dayjs(state.to)]}
        onChange={(days) =>
          days?.[0] && days[1] && change({ from: days[0].format('YYYY-MM-DD'), to: days[1].format('YYYY-MM-DD') })
        }
      />
      {state.view === 'sessions' ? <LabelField label={state.label} onLabel={(label) => change({ label })} /> : null}
    </div>
  )
}
