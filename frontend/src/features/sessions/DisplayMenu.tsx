import { Button, Popover, Segmented, Tooltip } from 'antd'
import { Rows3 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useStored } from '@/lib/stored'
import { groupings, type Grouping } from './listState'
import css from './SessionsPage.module.css'

/** Whether rows are low, kept in this browser. */
export const useDense = () => useStored('denseRows', false)

interface DisplayMenuProps {
  group: Grouping
  onGroup: (group: Grouping) => void
}

/** How high the rows are, and by what they are grouped. */
export function DisplayMenu({ group, onGroup }: DisplayMenuProps) {
  const { t } = useTranslation('sessions')
  const [dense, setDense] = useDense()
  const [open, setOpen] = useState(false)
  const content = (
    <div className={css.display}>
      <span>{t('display.rows')}</span>
      <Segmented
        size="small"
        aria-label={t('display.rows')}
        value={dense ? 'dense' : 'roomy'}
        options={(['roomy', 'dense'] as const).map((value) => ({ value, label: t(`display.${value}`) }))}
        onChange={(value) => setDense(value === 'dense')}
      />
      <span>{t('display.group')}</span>
      <Segmented<Grouping>
        size="small"
        aria-label={t('display.group')}
        value={group}
        options={groupings.map((value) => ({ value, label: t(`display.by.${value}`) }))}
        onChange={onGroup}
      />
    </div>
  )
  return (
    <Popover content={content} trigger="click" placement="bottomRight" arrow={false} open={open} onOpenChange={setOpen}>
      <Tooltip title={open ? '' : t('display.title')}>
        <Button type="text" aria-label={t('display.title')} icon={<Rows3 size={15} />} />
      </Tooltip>
    </Popover>
  )
}
