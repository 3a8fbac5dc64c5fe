import { Button, Input, Popover, Tooltip } from 'antd'
import { Bookmark, Check, X } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useStored } from '@/lib/stored'
import type { ListState } from './listState'
import css from './SessionsPage.module.css'
import { isView, longestName, usualViews, withView, type View } from './views'

const none: View[] = []

interface ViewsMenuProps {
  state: ListState
  onChange: (state: ListState) => void
}

interface ViewLineProps {
  name: string
  shown: boolean
  onShow: () => void
  onRemove?: () => void
}

function ViewLine({ name, shown, onShow, onRemove }: ViewLineProps) {
  const { t } = useTranslation('sessions')
  return (
    <li>
      <button type="button" className={css.menuItem} aria-pressed={shown} onClick={onShow}>
        <Check size={14} aria-hidden className={shown ? undefined : css.invisible} />
        <span>{name}</span>
      </button>
      {onRemove ? (
        <Button
          type="text"
          size="small"
          aria-label={t('view.remove', { name })}
          icon={<X size={13} />}
          onClick={onRemove}
        />
      ) : null}
    </li>
  )
}

/** Filters of the list by name: those that there always are, and one's own, kept in this browser. */
export function ViewsMenu({ state, onChange }: ViewsMenuProps) {
  const { t } = useTranslation('sessions')
  const [views, setViews] = useStored('views', none)
  const [open, setOpen] = useState(false)
  const [name, setName] = useState('')
  const show = (view: ListState) => {
    setOpen(false)
    onChange(view)
  }
  const save = () => {
    if (name.trim() === '') return
    setViews(withView(views, name, state))
    setName('')
  }
  const shown =
    views.find((view) => isView(state, view.state))?.name ??
    usualViews.flatMap((view) => (isView(state, view.state) ? t(`view.${view.key}`) : []))[0]
  const list = (
    <div className={css.menu}>
      <ul aria-label={t('view.title')}>
        {usualViews.map((view) => (
          <ViewLine
            key={view.key}
            name={t(`view.${view.key}`)}
            shown={isView(state, view.state)}
            onShow={() => show(view.state)}
          />
        ))}
        {views.map((view) => (
          <ViewLine
            key={`own ${view.name}`}
            name={view.name}
            shown={isView(state, view.state)}
            onShow={() => show(view.state)}
            onRemove={() => setViews(views.filter((one) => one !== view))}
          />
        ))}
      </ul>
      <div className={css.menuFoot}>
        <Input
          size="small"
          value={name}
          maxLength={longestName}
          placeholder={t('view.name')}
          aria-label={t('view.name')}
          onChange={(event) => setName(event.target.value)}
          onPressEnter={save}
        />
        <Button size="small" disabled={name.trim() === ''} onClick={save}>
          {t('view.save')}
        </Button>
      </div>
    </div>
  )
  return (
    <Popover content={list} trigger="click" placement="bottomRight" arrow={false} open={open} onOpenChange={setOpen}>
      <Tooltip title={open ? '' : t('view.title')}>
        <Button type="text" aria-label={t('view.title')} icon={<Bookmark size={15} />} className={css.viewButton ?? ''}>
          {shown}
        </Button>
      </Tooltip>
    </Popover>
  )
}
