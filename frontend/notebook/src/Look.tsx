import { Button, Dropdown } from 'antd'
import { Settings2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { writeStored } from '@/lib/stored'
import { changeLanguage, languages } from './i18n'

export type Theme = 'system' | 'light' | 'dark'

const themes: Theme[] = ['system', 'light', 'dark']
/** Languages are called what their speakers call them. */
const names = { en: 'English', ko: '한국어' }

/** How this page looks and speaks, which it remembers by itself: it has no part in Slipway's own settings. */
export function Look({ theme, onTheme }: { theme: Theme; onTheme: (theme: Theme) => void }) {
  const { t, i18n } = useTranslation()
  return (
    <Dropdown
      trigger={['click']}
      menu={{
        selectable: true,
        multiple: true,
        selectedKeys: [theme, i18n.language],
        items: [
          ...themes.map((key) => ({ key, label: t(`theme_${key}`) })),
          { type: 'divider' },
          ...languages.map((key) => ({ key, label: names[key] })),
        ],
        onClick: ({ key }) => {
          const chosen = themes.find((one) => one === key)
          if (chosen) onTheme(chosen)
          const language = languages.find((one) => one === key)
          if (!language) return
          writeStored('language', language)
          void changeLanguage(language)
        },
      }}
    >
      <Button type="text" icon={<Settings2 size={16} />} aria-label={t('look')} title={t('look')} />
    </Dropdown>
  )
}
