import { Button, Input, Select, Switch, Tooltip } from 'antd'
import { Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Setting } from '@/api/types.gen'
import css from './settings.module.css'

interface SettingControlProps {
  setting: Setting
  label: string
  onChange: (value: string | null) => void
}

/** A text that is saved when it is left or Enter is pressed, and taken back with Escape. */
function TextControl({ setting, label, onChange }: SettingControlProps) {
  const { t } = useTranslation('settings')
  const [draft, setDraft] = useState<string>()
  const commit = () => {
    if (draft !== undefined && draft !== setting.value) onChange(draft === '' ? null : draft)
    setDraft(undefined)
  }
  return (
    <Input
      aria-label={label}
      className={`${css.field} ${setting.kind === 'number' ? css.number : ''}`}
      placeholder={setting.default || t('unset')}
      disabled={setting.override !== ''}
      value={draft ?? setting.value}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={commit}
      onPressEnter={commit}
      onKeyDown={(event) => event.key === 'Escape' && setDraft(undefined)}
    />
  )
}

/** What changes a setting of the file, by its kind, and what takes it out again. */
export function SettingControl(props: SettingControlProps) {
  const { t } = useTranslation('settings')
  const { setting, label, onChange } = props
  const disabled = setting.override !== ''
  const reset = t('reset', { name: label })
  return (
    <div className={css.control}>
      {setting.set && !disabled ? (
        <Tooltip title={reset}>
          <Button
            type="text"
            size="small"
            aria-label={reset}
            icon={<Undo2 size={14} />}
            onClick={() => onChange(null)}
          />
        </Tooltip>
      ) : null}
      {setting.choices ? (
        <Select
          aria-label={label}
          className={css.choice ?? ''}
          disabled={disabled}
          value={setting.value}
          onChange={onChange}
          options={setting.choices.map((value) => ({ value, label: value }))}
        />
      ) : setting.kind === 'switch' ? (
        <Switch
          aria-label={label}
          disabled={disabled}
          checked={setting.value === '1'}
          onChange={(on) => onChange(on ? '1' : '0')}
        />
      ) : (
        <TextControl {...props} />
      )}
    </div>
  )
}
