import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'react-router'
import { useSessionBook } from '@/api/hooks'
import { useDemo } from '@/features/demo/useDemo'
import { sections } from './sections'

/** Names the window: the session in view, else the section. */
export function useTitle(session: string | undefined): void {
  const { t } = useTranslation(['common', 'demo', 'playground'])
  const demo = useDemo()
  const { pathname } = useLocation()
  const book = useSessionBook().data
  const section = sections.find(({ to }) => pathname.startsWith(to))?.name
  const name =
    (session ? book?.[session]?.name : undefined) ??
    (section ? t(`nav.${section}`) : pathname === '/playground' ? t('playground:title') : undefined)
  const app = demo ? `${t('app.name')} (${t('demo:badge')})` : t('app.name')
  useEffect(() => {
    document.title = name ? `${name} · ${app}` : app
  }, [name, app])
}
