import '@/ui/global.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { readStored } from '@/lib/stored'
import { App } from './App'
import { firstLanguage, startI18n } from './i18n'

async function start(): Promise<void> {
  await startI18n(firstLanguage(readStored('language', '')))
  const root = document.getElementById('root')
  if (!root) throw new Error('the page has no root')
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
  // Korean glyphs come after the first paint; the browser fetches only the parts it needs.
  void import('@/ui/korean')
}

void start()
