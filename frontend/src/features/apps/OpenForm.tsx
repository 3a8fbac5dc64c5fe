import { Alert, Button, Checkbox, Input, InputNumber } from 'antd'
import { type FormEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { OpenWish } from '@/api/openApp'
import type { App } from '@/api/types.gen'
import css from './apps.module.css'

interface OpenFormProps {
  app: App
  onOpen: (wish: OpenWish) => void
  onCancel: () => void
}

/** The ports of this computer that may be preferred; those below belong to its system. */
const firstPort = 1024
const lastPort = 65535

/** Asks how an app shall be opened: what it shows, by which port of this computer, and for whom. */
export function OpenForm({ app, onOpen, onCancel }: OpenFormProps) {
  const { t } = useTranslation('apps')
  const [dir, setDir] = useState(app.dir ?? '')
  const [port, setPort] = useState<number | null>(app.door?.port ?? null)
  const [everybody, setEverybody] = useState(app.door?.public ?? false)
  const wrong = port !== null && (port < firstPort || port > lastPort)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (wrong) return
    const chosen = dir.trim()
    onOpen({
      ...(app.dir && chosen ? { dir: chosen } : {}),
      ...(port ? { port } : {}),
      ...(everybody ? { public: true } : {}),
    })
  }
  return (
    <form className={css.form} onSubmit={submit} aria-label={t('open.title', { title: app.title })}>
      {app.dir ? (
        <label>
          <span>{t('dir.label')}</span>
          <Input
            autoFocus
            className={css.code ?? ''}
            value={dir}
            spellCheck={false}
            placeholder={app.dir}
            onChange={(event) => setDir(event.target.value)}
          />
          <span className={css.help}>{t('dir.text')}</span>
        </label>
      ) : null}
      <label>
        <span>{t('open.port')}</span>
        <InputNumber
          autoFocus={!app.dir}
          precision={0}
          controls={false}
          value={port}
          status={wrong ? 'error' : ''}
          aria-invalid={wrong}
          placeholder={t('open.anyPort')}
          onChange={setPort}
        />
        {wrong ? (
          <span className={css.fault} role="alert">
            {t('open.portFault', { first: firstPort, last: lastPort })}
          </span>
        ) : (
          <span className={css.help}>{t('open.portText')}</span>
        )}
      </label>
      <Checkbox checked={everybody} onChange={(event) => setEverybody(event.target.checked)}>
        {t('open.public')}
      </Checkbox>
      {everybody ? <Alert type="warning" showIcon title={t('open.publicText', { title: app.title })} /> : null}
      <div className={css.formButtons}>
        <Button size="small" type="primary" danger={everybody} disabled={wrong} htmlType="submit">
          {t(everybody ? 'open.submitPublic' : 'open.submit', { title: app.title })}
        </Button>
        <Button size="small" onClick={onCancel}>
          {t('open.cancel')}
        </Button>
      </div>
    </form>
  )
}
