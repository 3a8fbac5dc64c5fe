import { Button, Input, InputNumber } from 'antd'
import { Undo2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { MAX_PORT, MIN_PORT } from '@/api/rules.gen'
import { fill } from './draft'
import { FormCard } from './FormCard'
import { FormField } from './FormField'
import css from './form.module.css'
import type { CardProps } from './ServiceForm'
import { SpanInput } from './SpanInput'

/** How the server is started and asked whether it answers. */
export function ServerCard({ draft, faults, change }: CardProps) {
  const { t } = useTranslation('services')
  const filled = fill(draft)
  const usesOwn = filled.runtime.sources.length === 0 || draft.runtime === 'custom'
  const own = draft.command !== null && draft.runtime !== 'custom'
  return (
    <FormCard title={t('form.server')}>
      <FormField label={t('form.image')} fault={faults.image}>
        {(control) => (
          <Input
            {...control}
            className={css.mono ?? ''}
            spellCheck={false}
            placeholder="ghcr.io/example/server:1.2"
            value={filled.image}
            onChange={(event) => change({ image: event.target.value })}
          />
        )}
      </FormField>
      <FormField
        label={t('form.command')}
        note={usesOwn ? t('form.optional') : undefined}
        hint={t('form.commandHint')}
        fault={faults.command}
        aside={
          own ? (
            <Button type="text" size="small" icon={<Undo2 size={13} />} onClick={() => change({ command: null })}>
              {t('form.resetCommand')}
            </Button>
          ) : null
        }
      >
        {(control) => (
          <Input.TextArea
            {...control}
            className={css.mono ?? ''}
            autoSize={{ minRows: 2, maxRows: 8 }}
            spellCheck={false}
            placeholder={t('form.imageCommand')}
            value={filled.command}
            onChange={(event) => change({ command: event.target.value })}
          />
        )}
      </FormField>
      <div className={css.three}>
        <FormField label={t('form.port')} fault={faults.port}>
          {(control) => (
            <InputNumber
              {...control}
              min={MIN_PORT}
              max={MAX_PORT}
              precision={0}
              value={filled.port}
              onChange={(port) => change({ port })}
            />
          )}
        </FormField>
        <FormField label={t('form.health')} fault={faults.health}>
          {(control) => (
            <Input
              {...control}
              className={css.mono ?? ''}
              spellCheck={false}
              value={filled.health}
              onChange={(event) => change({ health: event.target.value })}
            />
          )}
        </FormField>
        <FormField label={t('form.delay')} fault={faults.delay}>
          {(control) => (
            <SpanInput
              control={control}
              label={t('form.delay')}
              span={filled.delay}
              onChange={(delay) => change({ delay })}
            />
          )}
        </FormField>
      </div>
      <p className={css.fact}>{t('form.healthHint')}</p>
      <FormField label={t('form.env')} note={t('form.optional')} hint={t('form.envHint')} fault={faults.env}>
        {(control) => (
          <Input.TextArea
            {...control}
            className={css.mono ?? ''}
            autoSize={{ minRows: 1, maxRows: 8 }}
            spellCheck={false}
            placeholder="HF_HUB_OFFLINE=1"
            value={draft.env}
            onChange={(event) => change({ env: event.target.value })}
          />
        )}
      </FormField>
    </FormCard>
  )
}
