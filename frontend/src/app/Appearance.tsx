import { App as AntApp, ConfigProvider } from 'antd'
import enUS from 'antd/locale/en_US'
import koKR from 'antd/locale/ko_KR'
import { useEffect, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useSettings } from '@/api/hooks'
import { changeLanguage, firstLanguage, isLanguage } from '@/i18n/i18n'
import { readStored, writeStored } from '@/lib/stored'
import { calmQuery, useMedia } from '@/lib/useMedia'
import { themeOf, type Mode } from '@/ui/theme'

/** The mode to show: what the person chose, or what the system says. */
function useMode(choice: string): Mode {
  const systemDark = useMedia('(prefers-color-scheme: dark)')
  return choice === 'dark' || (choice !== 'light' && systemDark) ? 'dark' : 'light'
}

/** Gives the page its theme, density and language by the person's settings. */
export function Appearance({ children }: { children: ReactNode }) {
  const { i18n } = useTranslation()
  const settings = useSettings().data
  const [remembered] = useState(() => readStored('theme', 'system'))
  const theme = settings?.theme ?? remembered
  const mode = useMode(theme)
  const calm = useMedia(calmQuery)

  useEffect(() => {
    document.documentElement.dataset.theme = mode
  }, [mode])
  useEffect(() => {
    if (settings) writeStored('theme', settings.theme)
  }, [settings])
  useEffect(() => {
    const language = settings && isLanguage(settings.language) ? settings.language : firstLanguage()
    if (settings && isLanguage(settings.language)) writeStored('language', language)
    if (language !== i18n.language) void changeLanguage(language)
  }, [settings, i18n])

  return (
    <ConfigProvider
      theme={themeOf(mode, settings?.density === 'compact' ? 'compact' : 'comfortable', calm)}
      locale={i18n.language === 'ko' ? koKR : enUS}
      wave={{ disabled: true }}
      modal={{ centered: true }}
    >
      <AntApp style={{ height: '100%' }} notification={{ placement: 'bottomRight' }} message={{ maxCount: 3 }}>
        {children}
      </AntApp>
    </ConfigProvider>
  )
}
