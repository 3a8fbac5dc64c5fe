import { useQuery } from '@tanstack/react-query'
import { App, Button, Switch } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { askForNotices, browserNotice, noticePermission } from '@/lib/browserNotice'
import css from './settings.module.css'

/** Whether notices are shown outside of the page, by whom, and a way to try it. */
export function NoticesControl({
  on,
  locked,
  onChange,
}: {
  on: boolean
  locked: boolean
  onChange: (on: boolean) => void
}) {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const notifier = useQuery({ queryKey: keys.notifier, queryFn: ({ signal }) => call('notifier', { signal }) })
  const [permission, setPermission] = useState(noticePermission)
  const desktop = notifier.data?.desktop ?? false
  const attempt = async () => {
    if (desktop) {
      await call('notifier-try').catch((error: unknown) => message.error(asProblem(error).message))
      return
    }
    const answer = await askForNotices()
    setPermission(answer)
    if (answer === 'granted')
      browserNotice({
        session: '',
        title: t('notifications.sampleTitle'),
        text: t('notifications.sampleText'),
        urgent: false,
        at: new Date().toISOString(),
      })
    else void message.warning(t(answer === 'unsupported' ? 'notifications.unsupported' : 'notifications.denied'))
  }
  return (
    <div className={css.control}>
      {on && notifier.data ? (
        <Button size="small" onClick={() => void attempt()}>
          {t(!desktop && permission === 'default' ? 'notifications.allow' : 'notifications.try')}
        </Button>
      ) : null}
      <Switch aria-label={t('notifications.label')} disabled={locked} checked={on} onChange={onChange} />
    </div>
  )
}
