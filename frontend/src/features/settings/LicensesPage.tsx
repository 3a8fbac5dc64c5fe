import { useTranslation } from 'react-i18next'
import notices from '../../../../build/notices/THIRD_PARTY_NOTICES?raw'
import { PageHeader } from '@/ui/PageHeader'
import css from './settings.module.css'

/** The works of others that Slipway contains, and their licences. */
export function LicensesPage() {
  const { t } = useTranslation('settings')
  return (
    <div className={css.logPage}>
      <PageHeader title={t('licenses.title')} note={t('licenses.note')} />
      <div className={css.card}>
        <pre className={css.log} tabIndex={0} aria-label={t('licenses.title')}>
          {notices}
        </pre>
      </div>
    </div>
  )
}
