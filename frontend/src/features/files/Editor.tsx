import { App, Button, Input } from 'antd'
import { Save } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { type FilePlace, statFile, writeText } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import css from './files.module.css'
import { visible } from './paths'

interface EditorProps {
  place: FilePlace
  /** Encoded. */
  path: string
  file: FileInfo
  readOnly: boolean
  text: string
  /** Says whether there is something that would be lost. */
  onChanged: (changed: boolean) => void
  onCancel: () => void
  onSaved: () => void
}

/** The text as an input holds it, and how it is written down again: inputs know no other line end than \n. */
export function lineEnds(text: string): { shown: string; written: (shown: string) => string } {
  const windows = text.includes('\r\n') && !/(^|[^\r])\n/.test(text)
  return { shown: text.replace(/\r\n?/g, '\n'), written: (shown) => (windows ? shown.replace(/\n/g, '\r\n') : shown) }
}

/** Edits a text. What somebody else wrote meanwhile is not replaced without a question. */
export function Editor({ place, path, file, readOnly, text, onChanged, onCancel, onSaved }: EditorProps) {
  const { t } = useTranslation(['files', 'common'])
  const { message, modal } = App.useApp()
  const { shown, written } = lineEnds(text)
  const [value, setValue] = useState(shown)
  const [busy, setBusy] = useState(false)
  const changed = value !== shown
  useEffect(() => {
    onChanged(changed)
    return () => onChanged(false)
  }, [changed, onChanged])
  const write = async () => {
    await writeText(place, path, written(value), { conflict: 'replace', mode: file.mode })
    void message.success(t('files:saved'))
    onSaved()
  }
  const tell = (error: unknown) => {
    const { message: text, hint } = asProblem(error)
    void message.error([text, hint].filter(Boolean).join(' '))
  }
  const save = async () => {
    setBusy(true)
    try {
      const now = await statFile(place, path).catch((error: unknown) => {
        if (asProblem(error).code.endsWith('_not-found')) return null
        throw error
      })
      if (now?.version === file.version) await write()
      else {
        modal.confirm({
          title: t(now ? 'files:changed.title' : 'files:gone.title'),
          content: t(now ? 'files:changed.text' : 'files:gone.text'),
          okText: t(now ? 'files:changed.go' : 'files:gone.go'),
          okButtonProps: { danger: now !== null },
          cancelText: t('common:action.cancel'),
          onOk: () => write().catch(tell),
        })
      }
    } catch (error) {
      tell(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <Input.TextArea
        className={css.editor}
        aria-label={visible(file.name)}
        readOnly={readOnly}
        value={value}
        spellCheck={false}
        onChange={(event) => setValue(event.target.value)}
      />
      {readOnly ? null : (
        <div className={css.foot}>
          {changed ? <span className={css.note}>{t('files:unsaved')}</span> : null}
          <Button onClick={onCancel}>{t('common:action.cancel')}</Button>
          <Button
            type="primary"
            icon={<Save size={15} />}
            disabled={!changed}
            loading={busy}
            onClick={() => void save()}
          >
            {t('common:action.save')}
          </Button>
        </div>
      )}
    </>
  )
}
