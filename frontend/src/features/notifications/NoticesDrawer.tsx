import { Button, Drawer } from 'antd'
import { Bell } from 'lucide-react'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useSessionActions } from '@/lib/actions'
import { messageText } from '@/lib/phrases'
import { isLive } from '@/lib/status'
import { formatMoment } from '@/lib/time'
import { EmptyState } from '@/ui/EmptyState'
import { StatusBadge } from '@/ui/StatusBadge'
import { RelativeTime } from '@/ui/Times'
import { useWhy } from '@/ui/useWhy'
import type { Notice } from './notices'
import css from './notifications.module.css'
import { Operations } from './Operations'
import { useNotices } from './NoticesProvider'

function Row({ notice, onOpen, onClose }: { notice: Notice; onOpen: () => void; onClose: () => void }) {
  const { t } = useTranslation(['notifications', 'common'])
  const why = useWhy()(notice)
  const text = notice.endsAt
    ? t('common:reclaim.at', { when: formatMoment(notice.endsAt) })
    : messageText(notice) || why
  return (
    <li className={css.entry}>
      <button type="button" className={css.item} onClick={onOpen}>
        <div className={css.rowBody}>
          <div className={css.rowTop}>
            <span className={css.rowName}>{notice.name}</span>
            <StatusBadge status={notice.status} failed={notice.failed} />
            <span className={css.rowTime}>
              <RelativeTime at={new Date(notice.at).toISOString()} />
            </span>
          </div>
          {text ? <div className={css.text}>{text}</div> : null}
        </div>
      </button>
      {isLive(notice.status) ? null : (
        <Link className={css.history} to={`/sessions/${notice.id}?view=history`} onClick={onClose}>
          {t('notifications:history')}
        </Link>
      )}
    </li>
  )
}

/** The last hundred notifications. Opening it marks them read. */
export function NoticesDrawer({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation('notifications')
  const actions = useSessionActions()
  const { notices, unread, readAll, clear } = useNotices()
  useEffect(() => {
    if (unread > 0) readAll()
  }, [unread, readAll])
  return (
    <Drawer
      open
      size={400}
      title={t('title')}
      onClose={onClose}
      extra={
        notices.length > 0 ? (
          <Button size="small" type="text" onClick={clear}>
            {t('clear')}
          </Button>
        ) : null
      }
      styles={{ body: { padding: 0 } }}
    >
      <Operations />
      {notices.length === 0 ? <EmptyState icon={Bell} title={t('empty')} text={t('emptyText')} /> : null}
      <ul className={css.list}>
        {notices.map((notice) => (
          <Row
            key={notice.id}
            notice={notice}
            onClose={onClose}
            onOpen={() => {
              onClose()
              actions.showDetail(notice.id)
            }}
          />
        ))}
      </ul>
    </Drawer>
  )
}
