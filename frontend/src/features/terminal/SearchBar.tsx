import { Button, Input, type InputRef } from 'antd'
import { ArrowDown, ArrowUp, X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import css from './terminal.module.css'
import type { Screen } from './screen'

const decorations = {
  matchBackground: '#7a6a1f',
  matchOverviewRuler: '#c9a227',
  activeMatchBackground: '#c26a00',
  activeMatchColorOverviewRuler: '#c26a00',
}

/** Finds text in a shell's output: Enter goes on, Shift+Enter back, Esc ends. */
export function SearchBar({ screen, text: given, onClose }: { screen: Screen; text?: string; onClose: () => void }) {
  const { t } = useTranslation('terminal')
  const [text, setText] = useState(() => given ?? screen.terminal.getSelection().split('\n')[0] ?? '')
  const [found, setFound] = useState({ index: -1, count: 0 })
  const input = useRef<InputRef>(null)

  useEffect(() => {
    input.current?.focus({ cursor: 'all' })
    const listener = screen.search.onDidChangeResults(({ resultIndex, resultCount }) =>
      setFound({ index: resultIndex, count: resultCount }),
    )
    return () => {
      listener.dispose()
      screen.search.clearDecorations()
      screen.terminal.focus()
    }
  }, [screen])

  useEffect(() => {
    screen.search.findPrevious(text, { decorations, incremental: true })
  }, [screen, text])

  const next = (back: boolean) => {
    if (back) screen.search.findPrevious(text, { decorations })
    else screen.search.findNext(text, { decorations })
  }
  const result =
    text === '' ? '' : found.count === 0 ? t('noMatch') : t('match', { index: found.index + 1, count: found.count })
  return (
    <div className={css.search} role="search">
      <Input
        ref={input}
        size="small"
        aria-label={t('find')}
        placeholder={t('find')}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation()
          if (event.key === 'Enter') next(event.shiftKey)
          if (event.key === 'Escape') onClose()
        }}
      />
      <span className={css.count} aria-live="polite">
        {result}
      </span>
      <Button
        type="text"
        size="small"
        aria-label={t('previousMatch')}
        icon={<ArrowUp size={14} />}
        onClick={() => next(true)}
      />
      <Button
        type="text"
        size="small"
        aria-label={t('nextMatch')}
        icon={<ArrowDown size={14} />}
        onClick={() => next(false)}
      />
      <Button type="text" size="small" aria-label={t('endSearch')} icon={<X size={14} />} onClick={onClose} />
    </div>
  )
}
