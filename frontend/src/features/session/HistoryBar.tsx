import { Button, Input, Select } from 'antd'
import { RotateCw, Search } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Phase } from '@/api/types.gen'
import { historySorts, valuesOf, type HistoryFilter } from './historyFilter'
import css from './SessionDrawer.module.css'

interface HistoryBarProps {
  phases: readonly Phase[]
  filter: HistoryFilter
  onFilter: (filter: HistoryFilter) => void
  onRefresh: () => void
  refreshing: boolean
}

const parts = ['phase', 'result', 'from', 'to'] as const

/** What the record of scheduling is filtered and sorted by. */
export function HistoryBar({ phases, filter, onFilter, onRefresh, refreshing }: HistoryBarProps) {
  const { t } = useTranslation(['session', 'common'])
  const [text, setText] = useState(filter.text)
  // What was handed on comes back in the filter; by then more may have been typed.
  const sent = useRef(filter.text)
  useEffect(() => {
    if (filter.text === sent.current) return
    sent.current = filter.text
    setText(filter.text)
  }, [filter.text])
  useEffect(() => {
    if (text === filter.text) return
    const timer = setTimeout(() => {
      sent.current = text
      onFilter({ ...filter, text })
    }, 150)
    return () => clearTimeout(timer)
  }, [text, filter, onFilter])
  const word = (part: (typeof parts)[number], value: string) => {
    if (part === 'phase') return t(`session:phase.${value as 'start'}`, { defaultValue: value })
    if (part === 'result') return t(`session:outcome.${value as 'SUCCESS'}`, { defaultValue: value })
    return t(`common:status.${value as 'RUNNING'}`, { defaultValue: value })
  }
  return (
    <div className={css.historyTools}>
      <Input
        size="small"
        allowClear
        prefix={<Search size={13} />}
        className={css.historySearch ?? ''}
        aria-label={t('session:history.search')}
        placeholder={t('session:history.search')}
        value={text}
        onChange={(e) => setText(e.target.value)}
      />
      {parts.map((part) => (
        <Select
          key={part}
          size="small"
          mode="multiple"
          allowClear
          maxTagCount={0}
          maxTagPlaceholder={() => `${t(`session:history.filter.${part}`)} (${filter[part].length})`}
          className={css.historySelect ?? ''}
          popupMatchSelectWidth={false}
          aria-label={t(`session:history.filter.${part}`)}
          placeholder={t(`session:history.filter.${part}`)}
          value={filter[part]}
          options={[...new Set([...valuesOf(phases, part), ...filter[part]])].map((value) => ({
            value,
            label: word(part, value),
          }))}
          onChange={(values: string[]) => onFilter({ ...filter, [part]: values })}
        />
      ))}
      <Select
        size="small"
        className={css.historySort ?? ''}
        popupMatchSelectWidth={false}
        aria-label={t('session:history.sort.label')}
        value={filter.sort}
        options={historySorts.map((value) => ({ value, label: t(`session:history.sort.${value}`) }))}
        onChange={(sort) => onFilter({ ...filter, sort })}
      />
      <Button
        size="small"
        type="text"
        aria-label={t('session:history.refresh')}
        title={t('session:history.refresh')}
        icon={<RotateCw size={13} />}
        loading={refreshing}
        onClick={onRefresh}
      />
    </div>
  )
}
