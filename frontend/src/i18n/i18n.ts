import i18next, { type PostProcessorModule } from 'i18next'
import { initReactI18next } from 'react-i18next'
import { setTimeLanguage } from '@/lib/time'
import { en } from './en'
import { withParticles } from './particles'

export const languages = ['en', 'ko'] as const
type Language = (typeof languages)[number]

export function isLanguage(value: string): value is Language {
  return (languages as readonly string[]).includes(value)
}

/** The language to begin with: what was chosen here last, else the browser's if there is a translation. */
export function firstLanguage(): Language {
  let stored = ''
  try {
    stored = JSON.parse(localStorage.getItem('slipway.language') ?? '""') as string
  } catch {
    stored = ''
  }
  if (isLanguage(stored)) return stored
  const preferred = navigator.language.slice(0, 2)
  return isLanguage(preferred) ? preferred : 'en'
}

async function load(language: Language): Promise<void> {
  if (language === 'en' || i18next.hasResourceBundle(language, 'common')) return
  const { ko } = await import('./ko')
  for (const [namespace, strings] of Object.entries(ko)) i18next.addResourceBundle('ko', namespace, strings)
}

/** Chooses the particles of Korean texts, after names were put into them. */
const particles: PostProcessorModule = {
  type: 'postProcessor',
  name: 'particles',
  process: (value: unknown) =>
    (typeof value === 'string' && i18next.language === 'ko' ? withParticles(value) : value) as string,
}

export async function startI18n(language: Language): Promise<void> {
  await i18next
    .use(initReactI18next)
    .use(particles)
    .init({
      lng: 'en',
      fallbackLng: 'en',
      defaultNS: 'common',
      postProcess: ['particles'],
      resources: { en },
      interpolation: { escapeValue: false },
      returnNull: false,
    })
  if (language !== 'en') await changeLanguage(language)
}

/** Changes every text of the page, fetching the language first if need be. */
export async function changeLanguage(language: Language): Promise<void> {
  await load(language)
  setTimeLanguage(language)
  document.documentElement.lang = language
  await i18next.changeLanguage(language)
}
