import { Button, Input } from 'antd'
import { type FormEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import css from './apps.module.css'

export interface DirFormProps {
  title: string
  dir: string
  onOpen: (dir: string) => void
  onCancel: () => void
}

/** Asks which directory of the session an app shall show. */
export function DirForm({ title, dir, onOpen, onCancel }: DirFormProps) {
  const { t } = useTranslation('apps')
  const [value, setValue] = useState(dir)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onOpen(value.trim())
  }
  return (
    <form className={css.dir} onSubmit={submit} aria-label={t('dir.title', { title })}>
      <label>
        <span>{t('dir.label')}</span>
        <Input autoFocus value={value} spellCheck={false} placeholder={dir} onChange={(event) => setValue(event.target.value)} />
      </label>
      <p className={css.none}>{t('dir.text')}</p>
      <div className={css.dirButtons}>
        <Button size="small" type="primary" htmlType="submit">
          {t('dir.open', { title })}
        </Button>
        <Button size="small" onClick={onCancel}>
          {t('dir.cancel')}
        </Button>
      </div>
    </form>
  )
}
