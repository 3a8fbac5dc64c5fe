import { Button, Tooltip } from 'antd'
import { Bell, Plus, SquareSplitHorizontal, SquareSplitVertical, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { platformOf } from '@/lib/platform'
import { shortcut } from './keys'
import type { Side } from './layout'
import css from './terminal.module.css'
import { TerminalSettings } from './TerminalSettings'

interface TabItem {
  /** Id of the shell that stands for the tab. */
  id: string
  label: string
  panes: number
  active: boolean
  rung: boolean
}

interface TabBarProps {
  items: TabItem[]
  running: boolean
  opening: boolean
  onShow: (id: string) => void
  onClose: (id: string) => void
  onNew: () => void
  onSplit: (side: Side) => void
  search: ReactNode
}

const platform = platformOf(navigator.userAgent)

/** The tabs, and at its end what can be done with the one that is shown. */
export function TabBar({ items, running, opening, onShow, onClose, onNew, onSplit, search }: TabBarProps) {
  const { t } = useTranslation('terminal')
  const splits = [
    {
      side: 'right' as const,
      label: t('splitRight'),
      keys: shortcut('E', platform),
      icon: <SquareSplitHorizontal size={15} />,
    },
    {
      side: 'down' as const,
      label: t('splitDown'),
      keys: shortcut('O', platform),
      icon: <SquareSplitVertical size={15} />,
    },
  ]
  return (
    <div className={css.bar}>
      <div className={css.tabs} role="group" aria-label={t('shells')}>
        {items.map((item, index) => (
          <TabButton
            key={item.id}
            item={item}
            number={items.length > 1 ? index + 1 : null}
            onShow={() => onShow(item.id)}
            onClose={() => onClose(item.id)}
          />
        ))}
        <Tooltip title={t('new')}>
          <Button
            type="text"
            size="small"
            aria-label={t('new')}
            disabled={!running}
            loading={opening}
            icon={<Plus size={15} />}
            onClick={onNew}
          />
        </Tooltip>
      </div>
      <div className={css.barTools}>
        {splits.map(({ side, label, keys, icon }) => (
          <Tooltip key={side} title={`${label} (${keys})`}>
            <Button
              type="text"
              size="small"
              aria-label={label}
              disabled={!running || opening}
              icon={icon}
              onClick={() => onSplit(side)}
            />
          </Tooltip>
        ))}
        {search}
        <TerminalSettings />
      </div>
    </div>
  )
}

function TabButton({
  item,
  number,
  onShow,
  onClose,
}: {
  item: TabItem
  number: number | null
  onShow: () => void
  onClose: () => void
}) {
  const { t } = useTranslation('terminal')
  const { label, active, panes, rung } = item
  return (
    <div
      className={`${css.tab} ${active ? css.tabActive : ''}`}
      onAuxClick={(event) => event.button === 1 && onClose()}
    >
      <button type="button" data-tab aria-pressed={active} className={css.tabName} title={label} onClick={onShow}>
        {number === null ? null : <span className={css.number}>{number} </span>}
        {label}
      </button>
      {rung ? <Bell size={12} className={css.rung} role="img" aria-label={t('rung')} /> : null}
      {panes > 1 ? (
        <span className={css.panesCount} title={t('panes', { count: panes })}>
          {panes}
        </span>
      ) : null}
      <button type="button" className={css.tabClose} aria-label={t('closeShell', { name: label })} onClick={onClose}>
        <X size={12} aria-hidden />
      </button>
    </div>
  )
}
