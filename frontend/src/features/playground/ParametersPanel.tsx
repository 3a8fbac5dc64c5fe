import { Button, Input, InputNumber } from 'antd'
import { type ReactNode, useId } from 'react'
import { useTranslation } from 'react-i18next'
import type { Parameters } from './conversation'
import css from './playground.module.css'

interface ParametersPanelProps {
  parameters: Parameters
  onChange: (change: Partial<Parameters>) => void
}

const none: Parameters = { system: '', temperature: null, topP: null, maxTokens: null, seed: null }

const numbers = [
  { name: 'temperature', min: 0, max: 2, step: 0.1, precision: 2 },
  { name: 'topP', min: 0.01, max: 1, step: 0.05, precision: 2 },
  { name: 'maxTokens', min: 1, max: 1_000_000, step: 64, precision: 0 },
  { name: 'seed', min: 0, max: 2 ** 31 - 1, step: 1, precision: 0 },
] as const

/** What models are told with the next prompt. */
export function ParametersPanel({ parameters, onChange }: ParametersPanelProps) {
  const { t } = useTranslation('playground')
  const changed = Object.values(parameters).some((value) => value !== null && value !== '')
  return (
    <aside className={css.panel} aria-label={t('parameters')}>
      <div className={css.panelHead}>
        <h2>{t('parameters')}</h2>
        {changed ? (
          <Button type="text" size="small" onClick={() => onChange(none)}>
            {t('reset')}
          </Button>
        ) : null}
      </div>
      <Field label={t('system')} hint={t('systemHint')}>
        {(control) => (
          <Input.TextArea
            {...control}
            autoSize={{ minRows: 4, maxRows: 14 }}
            placeholder={t('systemPlaceholder')}
            value={parameters.system}
            onChange={(event) => onChange({ system: event.target.value })}
          />
        )}
      </Field>
      {numbers.map(({ name, ...bounds }) => (
        <Field key={name} label={t(`parameter.${name}`)} hint={t(`parameterHint.${name}`)}>
          {(control) => (
            <InputNumber<number>
              {...control}
              {...bounds}
              className={css.number ?? ''}
              placeholder={t('byModel')}
              value={parameters[name]}
              onChange={(value) => onChange({ [name]: value })}
            />
          )}
        </Field>
      ))}
      <p className={css.small}>{t('memory')}</p>
    </aside>
  )
}

interface FieldProps {
  label: string
  hint: string
  children: (control: { id: string; 'aria-describedby': string }) => ReactNode
}

function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint` })}
      <div id={`${id}-hint`} className={css.small}>
        {hint}
      </div>
    </div>
  )
}
