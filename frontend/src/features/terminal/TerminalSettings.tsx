import { Button, Input, InputNumber, Popover, Select, Switch, Tooltip } from 'antd'
import { Settings2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useSaveSettings, useSettings } from '@/api/hooks'
import css from './terminal.module.css'
import { bells, cleanFamily, guards, themes, useTerminalChoices } from './terminalChoices'

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className={css.setting}>
      <span>{label}</span>
      {children}
    </label>
  )
}

/** What a person chooses for all shells, with the shell itself as the preview. */
export function TerminalSettings() {
  const { t } = useTranslation('terminal')
  return (
    <Popover trigger="click" placement="bottomRight" destroyOnHidden title={t('settings.title')} content={<Choices />}>
      <Tooltip title={t('settings.title')}>
        <Button type="text" size="small" aria-label={t('settings.title')} icon={<Settings2 size={15} />} />
      </Tooltip>
    </Popover>
  )
}

function Choices() {
  const { t } = useTranslation('terminal')
  const [choices, change] = useTerminalChoices()
  const settings = useSettings().data
  const save = useSaveSettings(() => undefined)
  return (
    <div className={css.settings}>
      <Row label={t('settings.size')}>
        <InputNumber min={8} max={32} precision={0} value={settings?.terminalFont ?? null} disabled={!settings} onChange={(size) => (size && settings ? save.mutate({ ...settings, terminalFont: size }) : undefined)} />
      </Row>
      <Row label={t('settings.family')}>
        <Input
          defaultValue={choices.family}
          placeholder="JetBrains Mono"
          spellCheck={false}
          onBlur={(event) => change({ family: cleanFamily(event.target.value) })}
          onPressEnter={(event) => change({ family: cleanFamily(event.currentTarget.value) })}
        />
      </Row>
      <Row label={t('settings.theme')}>
        <Select value={choices.theme} onChange={(theme) => change({ theme })} options={themes.map((value) => ({ value, label: t(`settings.themes.${value}`) }))} />
      </Row>
      <Row label={t('settings.bell')}>
        <Select value={choices.bell} onChange={(bell) => change({ bell })} options={bells.map((value) => ({ value, label: t(`settings.bells.${value}`) }))} />
      </Row>
      <Row label={t('settings.paste')}>
        <Select value={choices.paste} onChange={(paste) => change({ paste })} options={guards.map((value) => ({ value, label: t(`settings.guards.${value}`) }))} />
      </Row>
      <Row label={t('settings.reader')}>
        <Switch checked={choices.reader} onChange={(reader) => change({ reader })} />
      </Row>
      <p className={css.settingsNote}>{t('settings.note')}</p>
    </div>
  )
}
