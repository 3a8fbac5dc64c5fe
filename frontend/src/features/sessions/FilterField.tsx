import { AutoComplete, Input, Tooltip } from 'antd'
import { Search } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { filterProperties, suggest, type TitleOf } from './filter'
import css from './SessionsPage.module.css'

interface FilterFieldProps {
  query: string
  onQuery: (query: string) => void
  sessions: readonly Session[]
  /** Of an image's environment. */
  titleOf: TitleOf
}

/**
 * The filter field with suggestions. What is typed goes into the address after a pause, or when one goes elsewhere;
 * "/" jumps here from anywhere.
 */
export function FilterField({ query, onQuery, sessions, titleOf }: FilterFieldProps) {
  const { t } = useTranslation('sessions')
  const [text, setText] = useState(query)
  const [open, setOpen] = useState(false)
  const sent = useRef(query)
  useEffect(() => {
    if (query !== sent.current) {
      sent.current = query
      setText(query)
    }
  }, [query])
  const send = useCallback(() => {
    if (text === sent.current) return
    sent.current = text
    onQuery(text)
  }, [text, onQuery])
  useEffect(() => {
    const timer = setTimeout(send, 150)
    return () => clearTimeout(timer)
  }, [send])
  const options = useMemo(
    () =>
      (open ? suggest(text, sessions, titleOf) : []).map(({ query: value, term, count }) => ({
        value,
        label: (
          <span className={css.suggestion}>
            {term}
            <span className={css.suggestionHow}>{count ?? t('filter.property')}</span>
          </span>
        ),
      })),
    [open, text, sessions, titleOf, t],
  )
  const leave = () => {
    if (open && options.length > 0) setOpen(false)
    else setText('')
  }
  return (
    <Tooltip
      title={open ? '' : t('filter.help', { properties: filterProperties.join(', ') })}
      placement="bottomRight"
      mouseEnterDelay={0.8}
      trigger="hover"
    >
      <AutoComplete
        className={css.filter ?? ''}
        value={text}
        options={options}
        open={open && options.length > 0}
        defaultActiveFirstOption={false}
        onOpenChange={setOpen}
        onChange={(value: string) => {
          setText(value)
          setOpen(true)
        }}
        // A property alone is half a term: its values are offered next.
        onSelect={(value: string) => setOpen(value.endsWith(':'))}
        // Before the click that took the focus: a row would open, and the address of the list take its place.
        onBlur={send}
        onInputKeyDown={(event) => event.key === 'Escape' && leave()}
      >
        <Input
          data-filter
          prefix={<Search size={14} className={css.dim ?? ''} />}
          placeholder={t('filter.placeholder')}
          aria-label={t('filter.label')}
          allowClear
        />
      </AutoComplete>
    </Tooltip>
  )
}
