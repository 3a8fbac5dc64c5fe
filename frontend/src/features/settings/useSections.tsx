import { Input, InputNumber, Segmented, Select, Switch } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Setting, Settings } from '@/api/types.gen'
import { cleanFamily, terminalBells, terminalPastes, terminalThemes } from '@/lib/terminalChoices'
import { formatLength } from '@/lib/time'
import { NoticesControl } from './NoticesControl'
import type { RowSpec, SectionSpec } from './Row'
import { SettingControl } from './SettingControl'
import css from './settings.module.css'

/** The sizes to choose from, and the one in force where it is another. */
const zooms = (inForce: number) => [...new Set([80, 90, 100, 110, 125, 150, 175, 200, inForce])].sort((a, b) => a - b)

/** What a person chooses for every machine, as sections of the page. */
export function usePersonSections(
  settings: Settings,
  save: (change: Partial<Settings>) => void,
  locked: (name: string) => boolean,
): SectionSpec[] {
  const { t } = useTranslation('settings')
  const theme = (
    <Segmented
      aria-label={t('theme.label')}
      disabled={locked('theme')}
      value={settings.theme}
      onChange={(value) => save({ theme: value })}
      options={(['system', 'light', 'dark'] as const).map((value) => ({ value, label: t(`theme.${value}`) }))}
    />
  )
  const density = (
    <Segmented
      aria-label={t('density.label')}
      disabled={locked('density')}
      value={settings.density}
      onChange={(value) => save({ density: value })}
      options={(['comfortable', 'compact'] as const).map((value) => ({ value, label: t(`density.${value}`) }))}
    />
  )
  const language = (
    <Select
      aria-label={t('language.label')}
      className={css.choice ?? ''}
      disabled={locked('language')}
      value={settings.language}
      onChange={(value) => save({ language: value })}
      options={[
        { value: 'en', label: 'English' },
        { value: 'ko', label: '한국어' },
      ]}
    />
  )
  const terminal = useTerminalRows(settings, save, locked)
  const font = (
    <>
      <span className={css.preview} style={{ fontSize: settings.terminalFont }} aria-hidden>
        {t('terminalFont.preview')}
      </span>
      <InputNumber
        aria-label={t('terminalFont.label')}
        style={{ width: 72 }}
        disabled={locked('terminalFont')}
        min={8}
        max={32}
        precision={0}
        value={settings.terminalFont}
        onChange={(size) => (size ? save({ terminalFont: size }) : undefined)}
      />
    </>
  )
  const zoom = (
    <Select
      aria-label={t('zoom.label')}
      className={css.choice ?? ''}
      disabled={locked('zoom')}
      value={settings.zoom}
      onChange={(value) => save({ zoom: value })}
      options={zooms(settings.zoom).map((value) => ({ value, label: `${value} %` }))}
    />
  )
  const closing = (
    <Segmented
      aria-label={t('closeKeeps.label')}
      disabled={locked('closeKeeps')}
      value={settings.closeKeeps}
      onChange={(value) => save({ closeKeeps: value })}
      options={(['ask', 'keep', 'quit'] as const).map((value) => ({ value, label: t(`closeKeeps.${value}`) }))}
    />
  )
  const keeps = [...new Set(['0', '7d', '30d', '90d', settings.keepHome])]
  const home = (
    <Select
      aria-label={t('keepHome.label')}
      className={css.choice ?? ''}
      disabled={locked('keepHome')}
      value={settings.keepHome}
      onChange={(keepHome) => save({ keepHome })}
      options={keeps.map((value) => {
        const time = formatLength(value)
        return { value, label: time ? t('keepHome.for', { time }) : t('keepHome.no') }
      })}
    />
  )
  return [
    {
      title: t('section.sessions'),
      rows: [{ name: 'keepHome', label: t('keepHome.label'), text: t('keepHome.text'), control: home }],
    },
    {
      title: t('section.appearance'),
      rows: [
        { name: 'theme', label: t('theme.label'), control: theme },
        { name: 'density', label: t('density.label'), text: t('density.text'), control: density },
        { name: 'language', label: t('language.label'), control: language },
        { name: 'zoom', label: t('zoom.label'), text: t('zoom.text'), control: zoom },
      ],
    },
    {
      title: t('section.terminal'),
      rows: [
        { name: 'terminalFont', label: t('terminalFont.label'), text: t('terminalFont.text'), control: font },
        ...terminal,
      ],
    },
    {
      title: t('section.window'),
      rows: [
        {
          name: 'notifications',
          label: t('notifications.label'),
          text: t('notifications.text'),
          control: (
            <NoticesControl
              on={settings.notifications}
              locked={locked('notifications')}
              onChange={(notifications) => save({ notifications })}
            />
          ),
        },
        {
          name: 'openApps',
          label: t('openApps.label'),
          text: t('openApps.text'),
          control: (
            <Switch
              aria-label={t('openApps.label')}
              disabled={locked('openApps')}
              checked={settings.openApps}
              onChange={(openApps) => save({ openApps })}
            />
          ),
        },
        {
          name: 'autostart',
          label: t('autostart.label'),
          text: t('autostart.text'),
          control: (
            <Switch
              aria-label={t('autostart.label')}
              disabled={locked('autostart')}
              checked={settings.autostart}
              onChange={(autostart) => save({ autostart })}
            />
          ),
        },
        { name: 'closeKeeps', label: t('closeKeeps.label'), text: t('closeKeeps.text'), control: closing },
      ],
    },
  ]
}

/** How shells look and sound, in the words of their own settings. */
function useTerminalRows(
  settings: Settings,
  save: (change: Partial<Settings>) => void,
  locked: (name: string) => boolean,
): RowSpec[] {
  const { t } = useTranslation('terminal')
  const family = (text: string) => {
    const terminalFamily = cleanFamily(text)
    if (terminalFamily !== settings.terminalFamily) save({ terminalFamily })
  }
  const input = (
    <Input
      key={settings.terminalFamily}
      aria-label={t('settings.family')}
      className={css.field ?? ''}
      placeholder="JetBrains Mono"
      spellCheck={false}
      disabled={locked('terminalFamily')}
      defaultValue={settings.terminalFamily}
      onBlur={(event) => family(event.target.value)}
      onPressEnter={(event) => family(event.currentTarget.value)}
    />
  )
  const choice = <N extends 'terminalTheme' | 'terminalBell' | 'terminalPaste'>(
    name: N,
    label: string,
    options: { value: Settings[N]; label: string }[],
  ): RowSpec => ({
    name,
    label,
    control: (
      <Select<Settings[N]>
        aria-label={label}
        className={css.choice ?? ''}
        disabled={locked(name)}
        value={settings[name]}
        onChange={(value) => save({ [name]: value })}
        options={options}
      />
    ),
  })
  return [
    { name: 'terminalFamily', label: t('settings.family'), control: input },
    choice(
      'terminalTheme',
      t('settings.theme'),
      terminalThemes.map((value) => ({ value, label: t(`settings.themes.${value}`) })),
    ),
    choice(
      'terminalBell',
      t('settings.bell'),
      terminalBells.map((value) => ({ value, label: t(`settings.bells.${value}`) })),
    ),
    choice(
      'terminalPaste',
      t('settings.paste'),
      terminalPastes.map((value) => ({ value, label: t(`settings.guards.${value}`) })),
    ),
    {
      name: 'terminalReader',
      label: t('settings.reader'),
      control: (
        <Switch
          aria-label={t('settings.reader')}
          disabled={locked('terminalReader')}
          checked={settings.terminalReader}
          onChange={(terminalReader) => save({ terminalReader })}
        />
      ),
    },
  ]
}

/** What stands in the file alone: who is asked for newer versions, how this computer's agent shares and reclaims. */
export function useFileSections(all: Setting[], change: (name: string, value: string | null) => void): SectionSpec[] {
  const { t, i18n } = useTranslation('settings')
  const rowOf = (setting: Setting): RowSpec => {
    const key = `field.${setting.name}`
    // A setting that this page has no words for yet is shown with its own.
    const label = i18n.exists(key, { ns: 'settings' }) ? t(`${key}.label` as 'field.gpu.quantum.label') : setting.name
    const text = i18n.exists(key, { ns: 'settings' }) ? t(`${key}.text` as 'field.gpu.quantum.text') : setting.text
    return {
      name: setting.name,
      label,
      text,
      control: <SettingControl setting={setting} label={label} onChange={(value) => change(setting.name, value)} />,
    }
  }
  const updates = { title: t('section.updates'), rows: all.filter((s) => s.name === 'updates').map(rowOf) }
  const groups = (['gpu', 'idle'] as const).map((group) => ({
    title: t(`section.${group}`),
    note: t('restart'),
    rows: all.filter((s) => s.name.startsWith(`${group}.`)).map(rowOf),
  }))
  return [updates, ...groups]
}
