import { App, Button, Input, InputNumber, Popover, Select, Skeleton, Switch, Tooltip } from 'antd'
import { Settings2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useSaveSettings, useSettings } from '@/api/hooks'
import type { Settings } from '@/api/types.gen'
import { cleanFamily, terminalBells, terminalPastes, terminalThemes } from '@/lib/terminalChoices'
import { ErrorState } from '@/ui/ErrorState'
import css from './terminal.module.css'

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
  const { message } = App.useApp()
  const { data: settings, error, refetch } = useSettings()
  const save = useSaveSettings((refused) => {
    const { message: text, hint } = asProblem(refused)
    void message.error([text, hint].filter(Boolean).join(' '))
  })
  if (!settings)
    return error ? (
      <ErrorState compact problem={asProblem(error)} onRetry={() => void refetch()} />
    ) : (
      <Skeleton active className={css.settings ?? ''} />
    )
  const change = (part: Partial<Settings>) => save.mutate({ ...settings, ...part })
  const family = (text: string) => {
    const terminalFamily = cleanFamily(text)
    if (terminalFamily !== settings.terminalFamily) change({ terminalFamily })
  }
  return (
    <div className={css.settings}>
      <Row label={t('settings.size')}>
        <InputNumber
          min={8}
          max={32}
          precision={0}
          value={settings.terminalFont}
          onChange={(size) => (size ? change({ terminalFont: size }) : undefined)}
        />
      </Row>
      <Row label={t('settings.family')}>
        <Input
          key={settings.terminalFamily}
          defaultValue={settings.terminalFamily}
          placeholder="JetBrains Mono"
          spellCheck={false}
          onBlur={(event) => family(event.target.value)}
          onPressEnter={(event) => family(event.currentTarget.value)}
        />
      </Row>
      <Row label={t('settings.theme')}>
        <Select
          value={settings.terminalTheme}
          onChange={(terminalTheme) => change({ terminalTheme })}
          options={terminalThemes.map((value) => ({ value, label: t(`settings.themes.${value}`) }))}
        />
      </Row>
      <Row label={t('settings.bell')}>
        <Select
          value={settings.terminalBell}
          onChange={(terminalBell) => change({ terminalBell })}
          options={terminalBells.map((value) => ({ value, label: t(`settings.bells.${value}`) }))}
        />
      </Row>
      <Row label={t('settings.paste')}>
        <Select
          value={settings.terminalPaste}
          onChange={(terminalPaste) => change({ terminalPaste })}
          options={terminalPastes.map((value) => ({ value, label: t(`settings.guards.${value}`) }))}
        />
      </Row>
      <Row label={t('settings.reader')}>
        <Switch checked={settings.terminalReader} onChange={(terminalReader) => change({ terminalReader })} />
      </Row>
      <p className={css.settingsNote}>{t('settings.note')}</p>
    </div>
  )
}
