import { Button } from 'antd'
import { Unplug } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useConnection } from '@/api/hooks'
import { realLength } from '@/lib/now'
import { formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { useReconnect } from './LiveData'
import css from './Shell.module.css'

/** How long a loss lasts before it is worth a word, in ms. */
const patience = 1500

/** Says that what is shown is old, as soon as the control plane has been silent for a moment. */
export function ConnectionBanner() {
  const { t } = useTranslation()
  const connection = useConnection()
  const reconnect = useReconnect()
  const lost = connection.state !== 'open'
  const now = useNow(lost)
  if (!lost || !connection.lostAt || realLength(now - connection.lostAt) < patience) return null
  const text = connection.heardAt
    ? t('connection.lostText', { since: formatRelative(past(connection.heardAt, now), now) })
    : t('connection.lostTextNever')
  return (
    <div className={css.banner} role="alert">
      <Unplug size={16} aria-hidden />
      <strong>{t('connection.lostTitle')}</strong>
      <span className={css.bannerText}>{text}</span>
      <Button size="small" className={css.bannerEnd ?? ''} onClick={reconnect}>
        {t('connection.retry')}
      </Button>
    </div>
  )
}
