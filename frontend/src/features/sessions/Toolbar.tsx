import { Button, Checkbox, Input, Popover, Segmented, Tooltip } from 'antd'
import { Columns3, Download, RotateCw, Search } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { columnKeys, fixedColumns } from './columns'
import { filterProperties } from './filter'
import type { ListState, StateTab, TypeTab } from './listState'
import type { SortKey } from './order'
import css from './SessionsPage.module.css'

export interface ToolbarProps {
  state: ListState
  onChange: (change: Partial<ListState>) => void
  counts: Record<TypeTab, number> | undefined
  shown: SortKey[]
  onShown: (keys: SortKey[] | undefined) => void
  onExport: () => void
  onRefresh: () => void
  refreshing: boolean
}

const tabs: TypeTab[] = ['all', 'interactive', 'batch']

function ColumnChooser({ shown, onShown }: Pick<ToolbarProps, 'shown' | 'onShown'>) {
  const { t } = useTranslation('sessions')
  const toggle = (key: SortKey, on: boolean) => onShown(columnKeys.filter((k) => (k === key ? on : shown.includes(k))))
  const list = (
    <div className={css.columns}>
      <div className={css.columnsHead}>
        {t('columns.title')}
        <Button type="link" size="small" onClick={() => onShown(undefined)}>
          {t('columns.reset')}
        </Button>
      </div>
      {columnKeys.map((key) => (
        <Checkbox key={key} checked={fixedColumns.includes(key) || shown.includes(key)} disabled={fixedColumns.includes(key)} onChange={(e) => toggle(key, e.target.checked)}>
          {t(`column.${key}`)}
        </Checkbox>
      ))}
    </div>
  )
  return (
    <Popover content={list} trigger="click" placement="bottomRight" arrow={false}>
      <Tooltip title={t('action.columns')}>
        <Button type="text" aria-label={t('action.columns')} icon={<Columns3 size={15} />} />
      </Tooltip>
    </Popover>
  )
}

/** The filter field. What is typed goes into the address after a pause. */
function FilterField({ query, onQuery }: { query: string; onQuery: (query: string) => void }) {
  const { t } = useTranslation('sessions')
  const [text, setText] = useState(query)
  const sent = useRef(query)
  useEffect(() => {
    if (query !== sent.current) {
      sent.current = query
      setText(query)
    }
  }, [query])
  useEffect(() => {
    if (text === sent.current) return
    const timer = setTimeout(() => {
      sent.current = text
      onQuery(text)
    }, 150)
    return () => clearTimeout(timer)
  }, [text, onQuery])
  return (
    <Tooltip title={t('filter.help', { properties: filterProperties.join(', ') })} placement="bottomRight" mouseEnterDelay={0.8} trigger="hover">
      <Input
        data-filter
        className={css.filter ?? ''}
        prefix={<Search size={14} className={css.dim ?? ''} />}
        placeholder={t('filter.placeholder')}
        aria-label={t('filter.label')}
        allowClear
        value={text}
        onChange={(e) => setText(e.target.value)}
        onKeyDown={(e) => e.key === 'Escape' && setText('')}
      />
    </Tooltip>
  )
}

export function Toolbar({ state, onChange, counts, shown, onShown, onExport, onRefresh, refreshing }: ToolbarProps) {
  const { t } = useTranslation('sessions')
  const [setQuery] = useState(() => (query: string) => onChange({ query }))
  return (
    <div className={css.bar}>
      <div className={css.tabs} role="tablist" aria-label={t('tab.label')}>
        {tabs.map((tab) => (
          <button key={tab} type="button" role="tab" aria-selected={state.type === tab} className={`${css.tab} ${state.type === tab ? css.tabOn : ''}`} onClick={() => onChange({ type: tab })}>
            {t(`tab.${tab}`)}
            <span className={css.tabCount}>{counts?.[tab] ?? ''}</span>
          </button>
        ))}
      </div>
      <Segmented<StateTab>
        aria-label={t('state.label')}
        size="small"
        value={state.state}
        onChange={(value) => onChange({ state: value })}
        options={[
          { value: 'live', label: t('state.live') },
          { value: 'finished', label: t('state.finished') },
        ]}
      />
      <div className={css.tools}>
        <Tooltip title={t('action.refresh')}>
          <Button type="text" aria-label={t('action.refresh')} loading={refreshing} icon={<RotateCw size={15} />} onClick={onRefresh} />
        </Tooltip>
        <Tooltip title={t('action.export')}>
          <Button type="text" aria-label={t('action.export')} icon={<Download size={15} />} onClick={onExport} />
        </Tooltip>
        <ColumnChooser shown={shown} onShown={onShown} />
        <FilterField query={state.query} onQuery={setQuery} />
      </div>
    </div>
  )
}
