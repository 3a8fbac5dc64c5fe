import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import en from './en.json'
import ko from './ko.json'

export const languages = ['en', 'ko'] as const
export type Language = (typeof languages)[number]

const isLanguage = (text: string): text is Language => (languages as readonly string[]).includes(text)

/** The language that was chosen here last, else the browser's where there is a translation. */
export function firstLanguage(stored: string): Language {
  const preferred = navigator.language.slice(0, 2)
  return isLanguage(stored) ? stored : isLanguage(preferred) ? preferred : 'en'
}

export async function startI18n(language: Language): Promise<void> {
  document.documentElement.lang = language
  await i18next.use(initReactI18next).init({
    lng: language,
    fallbackLng: 'en',
    resources: { en: { translation: en }, ko: { translation: ko } },
    interpolation: { escapeValue: false },
    returnNull: false,
  })
}

export async function changeLanguage(language: Language): Promise<void> {
  document.documentElement.lang = language
  await i18next.changeLanguage(language)
}
