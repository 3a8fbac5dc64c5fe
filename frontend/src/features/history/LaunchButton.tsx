import { Button, Dropdown, Space, type MenuProps } from 'antd'
import { ChevronDown, Plus } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useRecents } from '@/api/hooks'
import css from './history.module.css'
import { orderRecents, resourcesText } from './order'

interface LaunchButtonProps {
  onNew: () => void
  onUse: (id: string) => void
  onAll: () => void
}

/** New session, with the recent launches one click away. */
export function LaunchButton({ onNew, onUse, onAll }: LaunchButtonProps) {
  const { t } = useTranslation(['history', 'common'])
  const recents = orderRecents(useRecents().data ?? []).slice(0, 8)
  const items: MenuProps['items'] = [
    {
      type: 'group',
      label: t('history:menu'),
      children: recents.map((recent) => ({
        key: recent.id,
        label: (
          <span className={css.item}>
            <span className={css.itemName}>{recent.name}</span>
            <span className={css.itemText}>{resourcesText(recent.spec)}</span>
          </span>
        ),
        onClick: () => onUse(recent.id),
      })),
    },
    { type: 'divider' },
    { key: ':all', label: t('history:all'), onClick: onAll },
  ]
  return (
    <Space.Compact>
      <Button type="primary" icon={<Plus size={15} />} onClick={onNew}>
        {t('common:header.launch')}
      </Button>
      {recents.length > 0 ? (
        <Dropdown trigger={['click']} placement="bottomRight" menu={{ items }}>
          <Button type="primary" aria-label={t('history:menu')} icon={<ChevronDown size={15} />} />
        </Dropdown>
      ) : null}
    </Space.Compact>
  )
}
