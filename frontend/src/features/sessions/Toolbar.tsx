import { Button, Checkbox, Popover, Segmented, Tooltip } from 'antd'
import { CircleX, Columns3, Download, RotateCw } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { ListBar } from '@/ui/ListPage'
import { Tabs } from '@/ui/Tabs'
import { type ColumnKey, columnKeys, fixedColumns } from './columns'
import type { TitleOf } from './filter'
import { FilterField } from './FilterField'
import { DisplayMenu } from './DisplayMenu'
import { type ListState, type StateTab, type TypeTab, types } from './listState'
import css from './SessionsPage.module.css'
import { ViewsMenu } from './ViewsMenu'

interface ToolbarProps {
  state: ListState
  onChange: (change: Partial<ListState>) => void
  counts: Record<TypeTab, number> | undefined
  /** How many have failed since the finished ones were looked at. */
  failed: number
  shown: ColumnKey[]
  onShown: (keys: ColumnKey[] | undefined) => void
  onExport: () => void
  onRefresh: () => void
  refreshing: boolean
  /** Those whose values the filter offers. */
  sessions: readonly Session[]
  titleOf: TitleOf
}

function ColumnChooser({ shown, onShown }: Pick<ToolbarProps, 'shown' | 'onShown'>) {
  const { t } = useTranslation('sessions')
  const toggle = (key: ColumnKey, on: boolean) =>
    onShown(columnKeys.filter((k) => (k === key ? on : shown.includes(k))))
  const list = (
    <div className={css.columns}>
      <div className={css.columnsHead}>
        {t('columns.title')}
        <Button type="link" size="small" onClick={() => onShown(undefined)}>
          {t('columns.reset')}
        </Button>
      </div>
      {columnKeys.map((key) => (
        <Checkbox
          key={key}
          checked={fixedColumns.includes(key) || shown.includes(key)}
          disabled={fixedColumns.includes(key)}
          onChange={(e) => toggle(key, e.target.checked)}
        >
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

/** The finished sessions, and that some of them failed while one did not look. */
function Finished({ failed }: { failed: number }) {
  const { t } = useTranslation('sessions')
  if (failed === 0) return t('state.finished')
  return (
    <Tooltip title={t('state.failed', { count: failed })}>
      <span className={css.finished}>
        <span>{t('state.finished')}</span>
        <span className={css.failed}>
          <CircleX size={12} aria-hidden />
          <span aria-hidden>{failed}</span>
          <span className="unseen">{t('state.failed', { count: failed })}</span>
        </span>
      </span>
    </Tooltip>
  )
}

export function Toolbar({
  state,
  onChange,
  counts,
  failed,
  shown,
  onShown,
  onExport,
  onRefresh,
  refreshing,
  sessions,
  titleOf,
}: ToolbarProps) {
  const { t } = useTranslation('sessions')
  const [setQuery] = useState(() => (query: string) => onChange({ query }))
  return (
    <ListBar>
      <Tabs
        label={t('tab.label')}
        tabs={types.map((key) => ({ key, label: t(`tab.${key}`), count: counts?.[key] }))}
        value={state.type}
        onChange={(type) => onChange({ type })}
      />
      <Segmented<StateTab>
        aria-label={t('state.label')}
        size="small"
        value={state.state}
        onChange={(value) => onChange({ state: value })}
        options={[
          { value: 'live', label: t('state.live') },
          { value: 'finished', label: <Finished failed={failed} /> },
        ]}
      />
      <div className={css.tools}>
        <Tooltip title={t('action.refresh')}>
          <Button
            type="text"
            aria-label={t('action.refresh')}
            loading={refreshing}
            icon={<RotateCw size={15} />}
            onClick={onRefresh}
          />
        </Tooltip>
        <Tooltip title={t('action.export')}>
          <Button type="text" aria-label={t('action.export')} icon={<Download size={15} />} onClick={onExport} />
        </Tooltip>
        <ColumnChooser shown={shown} onShown={onShown} />
        <DisplayMenu group={state.group} onGroup={(group) => onChange({ group })} />
        <ViewsMenu state={state} onChange={onChange} />
        <FilterField query={state.query} onQuery={setQuery} sessions={sessions} titleOf={titleOf} />
      </div>
    </ListBar>
  )
}
