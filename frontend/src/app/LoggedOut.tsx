import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { CopyButton } from '@/ui/CopyButton'
import css from './Shell.module.css'

const command = 'slipway login'

/** In place of everything while this browser is not logged in. */
export function LoggedOut() {
  const { t } = useTranslation()
  return (
    <main className={css.loggedOut}>
      <img src="/icon.svg" width={40} height={40} alt="" />
      <h1>{t('login.title')}</h1>
      <p>{t('login.text')}</p>
      <div className={css.command}>
        <code>{command}</code>
        <CopyButton text={command} label={t('login.copy')} />
      </div>
      <Button onClick={() => location.reload()}>{t('action.reload')}</Button>
    </main>
  )
}
