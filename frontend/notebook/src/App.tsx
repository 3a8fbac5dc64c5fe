import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { App as AntApp, ConfigProvider } from 'antd'
import enUS from 'antd/locale/en_US'
import koKR from 'antd/locale/ko_KR'
import { useEffect, useState, useSyncExternalStore, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useStored } from '@/lib/stored'
import { useMedia } from '@/lib/useMedia'
import { themeOf } from '@/ui/theme'
import { FilePanel } from './FilePanel'
import { Look, type Theme } from './Look'
import { OpenFile } from './OpenFile'
import { dirOf } from './paths'
import { Welcome } from './Welcome'
import styles from './notebook.module.css'

const queries = new QueryClient({ defaultOptions: { queries: { retry: 1, refetchOnWindowFocus: false } } })

const subscribe = (listener: () => void) => {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}

/** The notebook that is shown is part of the address. */
function usePath(): [string, (path: string) => void] {
  const path = useSyncExternalStore(subscribe, () => decodeURIComponent(location.hash.slice(1)))
  return [
    path,
    (next) => {
      location.hash = next.split('/').map(encodeURIComponent).join('/')
    },
  ]
}

export function App() {
  const { i18n } = useTranslation()
  const [theme, setTheme] = useStored<Theme>('theme', 'system')
  const systemDark = useMedia('(prefers-color-scheme: dark)')
  const calm = useMedia('(prefers-reduced-motion: reduce)')
  const dark = theme === 'dark' || (theme === 'system' && systemDark)
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light'
  }, [dark])
  return (
    <ConfigProvider
      theme={themeOf(dark ? 'dark' : 'light', 'comfortable', calm)}
      locale={i18n.language === 'ko' ? koKR : enUS}
      wave={{ disabled: true }}
    >
      <AntApp style={{ height: '100%' }} message={{ maxCount: 3 }}>
        <QueryClientProvider client={queries}>
          <Desk dark={dark} look={<Look theme={theme} onTheme={setTheme} />} />
        </QueryClientProvider>
      </AntApp>
    </ConfigProvider>
  )
}

function Desk({ dark, look }: { dark: boolean; look: ReactNode }) {
  const { t } = useTranslation()
  const [path, setPath] = usePath()
  const [dir, setDir] = useState(dirOf(path))
  const [narrow] = useState(() => window.innerWidth < 800)
  const [shown, setShown] = useState(!narrow)
  useEffect(() => {
    document.title = path ? `${path.split('/').at(-1) ?? path} · ${t('title')}` : t('title')
  }, [path, t])
  const open = (next: string) => {
    setPath(next)
    setDir(dirOf(next))
    if (narrow) setShown(false)
  }
  return (
    <div className={styles.desk} data-files={shown}>
      {shown && <FilePanel dir={dir} onDir={setDir} path={path} onOpen={open} />}
      <main className={styles.main}>
        {path ? (
          <OpenFile key={path} path={path} dark={dark} look={look} files={shown} onFiles={setShown} />
        ) : (
          <Welcome look={look} files={shown} onFiles={setShown} onOpen={open} />
        )}
      </main>
    </div>
  )
}
