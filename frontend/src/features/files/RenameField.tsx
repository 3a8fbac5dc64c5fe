import { App, Input, Tooltip, type InputRef } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import type { FileInfo } from '@/api/types.gen'
import css from './files.module.css'
import { nameFault, visible } from './paths'

interface RenameFieldProps {
  file: FileInfo
  taken: readonly string[]
  /** Renames; fails with why it was refused. */
  onRename: (name: string) => Promise<void>
  onClose: () => void
}

/** A name being changed in its row: Enter or leaving takes it, Escape leaves all as it was. */
export function RenameField({ file, taken, onRename, onClose }: RenameFieldProps) {
  const { t } = useTranslation('files')
  const { message } = App.useApp()
  const [name, setName] = useState(file.name)
  const [busy, setBusy] = useState(false)
  const over = useRef(false)
  const input = useRef<InputRef>(null)
  const fault = name === file.name ? '' : nameFault(name, taken)
  useEffect(() => {
    // What one wants to change is the name, seldom its ending.
    const stem = file.kind === 'file' ? file.name.lastIndexOf('.') : -1
    input.current?.focus({ preventScroll: true })
    input.current?.setSelectionRange(0, stem > 0 ? stem : file.name.length)
  }, [file])
  const close = () => {
    over.current = true
    onClose()
  }
  const take = async () => {
    if (over.current || busy) return
    if (name === file.name) return close()
    if (fault) return
    setBusy(true)
    try {
      await onRename(name)
      close()
    } catch (error) {
      const { message: text, hint } = asProblem(error)
      void message.error([text, hint].filter(Boolean).join(' '))
      setBusy(false)
    }
  }
  return (
    <Tooltip open={fault !== ''} title={fault ? t(fault) : ''} placement="bottomLeft">
      <Input
        ref={input}
        size="small"
        className={css.rename ?? ''}
        aria-label={t('renameOf', { name: visible(file.name) })}
        value={name}
        status={fault ? 'error' : ''}
        readOnly={busy}
        spellCheck={false}
        onChange={(event) => setName(event.target.value)}
        onDoubleClick={(event) => event.stopPropagation()}
        onKeyDown={(event) => {
          event.stopPropagation()
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) void take()
          if (event.key === 'Escape') close()
        }}
        onBlur={() => (fault ? close() : void take())}
      />
    </Tooltip>
  )
}
