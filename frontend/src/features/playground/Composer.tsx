import { Button, Input } from 'antd'
import { Send, Square, X } from 'lucide-react'
import { type ComponentRef, type KeyboardEvent, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import css from './playground.module.css'

interface ComposerProps {
  draft: string
  /** An answer is on its way. */
  busy: boolean
  /** The last prompt is being changed. */
  editing: boolean
  placeholder: string
  onWrite: (draft: string) => void
  onSend: () => void
  onStop: () => void
  onCancelEdit: () => void
}

/** Where a prompt is written. */
export function Composer({ draft, busy, editing, placeholder, ...on }: ComposerProps) {
  const { t } = useTranslation(['playground', 'common'])
  const field = useRef<ComponentRef<typeof Input.TextArea>>(null)
  useEffect(() => {
    if (editing) field.current?.focus({ cursor: 'end' })
  }, [editing])
  const ready = !busy && draft.trim() !== ''
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return // Enter chooses a Korean syllable
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      if (ready) on.onSend()
    } else if (event.key === 'Escape' && busy) on.onStop()
    else if (event.key === 'Escape' && editing) on.onCancelEdit()
  }
  return (
    <div className={css.composer}>
      {editing ? (
        <div className={css.editing}>
          <span>{t('playground:editing')}</span>
          <Button type="text" size="small" icon={<X size={13} />} onClick={on.onCancelEdit}>
            {t('common:action.cancel')}
          </Button>
        </div>
      ) : null}
      <div className={css.write}>
        <Input.TextArea
          ref={field}
          autoFocus
          autoSize={{ minRows: 1, maxRows: 8 }}
          aria-label={t('playground:prompt')}
          aria-keyshortcuts="Enter"
          placeholder={placeholder}
          value={draft}
          onChange={(event) => on.onWrite(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {busy ? (
          <Button
            icon={<Square size={13} fill="currentColor" />}
            onClick={() => {
              on.onStop()
              field.current?.focus() // the button goes
            }}
          >
            {t('playground:stop')}
          </Button>
        ) : (
          <Button type="primary" icon={<Send size={14} />} disabled={!ready} onClick={on.onSend}>
            {t('playground:send')}
          </Button>
        )}
      </div>
      <p className={css.keys}>{t(busy ? 'playground:keysBusy' : 'playground:keys')}</p>
    </div>
  )
}
