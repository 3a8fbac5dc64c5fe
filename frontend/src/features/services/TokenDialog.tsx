import { Input, InputNumber, Select } from 'antd'
import { TriangleAlert } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useAddToken } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { formatLength } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { FormField } from './FormField'
import css from './services.module.css'

const lifetimes = ['', '1d', '7d', '30d', '90d', '365d'] as const

/** Makes a token, and shows its text this one time. */
export function TokenDialog({ service, onClose }: { service: Service; onClose: () => void }) {
  const { t } = useTranslation(['services', 'common'])
  const add = useAddToken(service)
  const [name, setName] = useState('')
  const [lifetime, setLifetime] = useState<string>('90d')
  const [perMinute, setPerMinute] = useState<number | null>(null)
  const [concurrent, setConcurrent] = useState<number | null>(null)
  const problem = add.error ? asProblem(add.error) : null
  const at = (field: string) => problem?.fields.find((one) => one.field === field)
  const go = () => {
    if (name.trim() === '' || add.isPending) return
    add.mutate({
      name: name.trim(),
      ...(lifetime ? { lifetime } : {}),
      ...(perMinute ? { perMinute } : {}),
      ...(concurrent ? { concurrent } : {}),
    })
  }
  if (add.data) {
    return (
      <Dialog
        title={t('services:token.made', { name: add.data.name })}
        okText={t('common:action.close')}
        cancelButtonProps={{ style: { display: 'none' } }}
        mask={{ closable: false }} // a click beside it would lose the token
        onOk={onClose}
        onCancel={onClose}
      >
        <div className={css.form}>
          <div className={css.token}>
            <code>{add.data.text}</code>
            <CopyButton text={add.data.text} label={t('services:token.copy')} />
          </div>
          <p className={css.once}>
            <TriangleAlert size={14} aria-hidden />
            {t('services:token.once')}
          </p>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog
      title={t('services:token.newTitle', { name: service.name })}
      okText={t('services:token.create')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ disabled: name.trim() === '', loading: add.isPending }}
      onOk={go}
      onCancel={onClose}
    >
      <div className={css.form}>
        <FormField label={t('services:token.name')} hint={t('services:token.nameHint')} fault={at('name')}>
          {(control) => (
            <Input
              {...control}
              autoFocus
              maxLength={64}
              value={name}
              onChange={(event) => setName(event.target.value)}
              onPressEnter={go}
            />
          )}
        </FormField>
        <FormField label={t('services:token.lifetime')}>
          {({ id }) => (
            <Select
              id={id}
              value={lifetime}
              options={lifetimes.map((value) => ({
                value,
                label: value ? formatLength(value) : t('services:token.never'),
              }))}
              onChange={setLifetime}
            />
          )}
        </FormField>
        <div className={css.two}>
          <FormField label={t('services:token.perMinute')} fault={at('perMinute')}>
            {(control) => (
              <InputNumber
                {...control}
                min={1}
                precision={0}
                placeholder={t('services:token.unlimited')}
                value={perMinute}
                onChange={setPerMinute}
              />
            )}
          </FormField>
          <FormField label={t('services:token.concurrent')}>
            {(control) => (
              <InputNumber
                {...control}
                min={1}
                precision={0}
                placeholder={t('services:token.unlimited')}
                value={concurrent}
                onChange={setConcurrent}
              />
            )}
          </FormField>
        </div>
        {problem && problem.fields.length === 0 ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
