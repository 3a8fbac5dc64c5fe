import { useTranslation } from 'react-i18next'

/**
 * Returns what says a text that Slipway itself put into the catalogue or among
 * the presets in a person's language. What somebody wrote in its place is said as it is.
 */
export function useSeeded(): (kind: 'environment' | 'preset', id: string, text: string) => string {
  const { t, i18n } = useTranslation('launcher')
  const english = i18n.getFixedT('en', 'launcher')
  return (kind, id, text) => {
    const key = `seeded.${kind}.${id}` as 'seeded.preset.small'
    return english(key, { defaultValue: '' }) === text ? t(key) : text
  }
}
