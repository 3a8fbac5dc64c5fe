import { TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { SettingProblem } from '@/api/types.gen'
import css from './settings.module.css'

/** What in the file, or in a variable, cannot be used, and where it stands. */
export function Problems({ problems }: { problems: SettingProblem[] }) {
  const { t } = useTranslation('settings')
  if (problems.length === 0) return null
  return (
    <div className={css.problems} role="alert">
      <TriangleAlert size={16} aria-hidden />
      <div>
        <strong>{t('problems')}</strong>
        <ul>
          {problems.map((p) => (
            <li key={`${p.line} ${p.name}`}>
              {p.line > 0 ? t('problemLine', { line: p.line }) : t('problemVariable')}
              {p.name ? (
                <>
                  {' '}
                  · <code>{p.name}</code>
                </>
              ) : null}
              : {p.message}
            </li>
          ))}
        </ul>
      </div>
    </div>
  )
}
