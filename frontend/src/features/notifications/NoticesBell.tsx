import { Badge, Button, Tooltip } from 'antd'
import { Bell } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useOperations } from '@/api/hooks'
import { useNotices } from './NoticesProvider'

/** The bell of the header with the number of what was not looked at yet. */
export function NoticesBell({ onOpen }: { onOpen: () => void }) {
  const { t } = useTranslation()
  const asking = (useOperations().data ?? []).filter((o) => o.state === 'waiting').length
  const unread = useNotices().unread + asking
  const label = unread > 0 ? t('header.notifications_unread', { count: unread }) : t('header.notifications')
  return (
    <Tooltip title={t('header.notifications')}>
      <Badge count={unread} size="small" offset={[-5, 6]} overflowCount={99}>
        <Button type="text" aria-label={label} icon={<Bell size={16} />} onClick={onOpen} />
      </Badge>
    </Tooltip>
  )
}
