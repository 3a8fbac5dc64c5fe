import { Input } from 'antd'
import { useTranslation } from 'react-i18next'
import { runtimeIds, runtimes } from '@/api/runtimes.gen'
import { FormCard } from './FormCard'
import { FormField } from './FormField'
import css from './form.module.css'
import type { CardProps } from './ServiceForm'
import { memoryFlag } from './runtimes'

/** The name, which is fixed once there is a service, and the program that serves the model. */
export function RuntimeCard({ draft, faults, change, fixed }: CardProps & { fixed: boolean }) {
  const { t } = useTranslation('services')
  const vram = memoryFlag(runtimes[draft.runtime])
  return (
    <FormCard title={t('form.service')}>
      <FormField label={t('form.name')} hint={fixed ? undefined : t('form.nameHint')} fault={faults.name}>
        {(control) => (
          <Input
            {...control}
            autoFocus={!fixed}
            disabled={fixed}
            className={css.short ?? ''}
            spellCheck={false}
            autoComplete="off"
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        )}
      </FormField>
      <fieldset className={css.choices}>
        <legend>{t('form.runtime')}</legend>
        {runtimeIds.map((id) => (
          <label key={id} className={`${css.choice} ${draft.runtime === id ? css.chosen : ''}`}>
            <input
              type="radio"
              name="runtime"
              value={id}
              checked={draft.runtime === id}
              onChange={() => change({ runtime: id })}
            />
            <span className={css.choiceName}>{runtimes[id].name || t(`runtime.${id as 'image'}`)}</span>
            <span className={css.choiceText}>{t(`runtimeText.${id}`)}</span>
          </label>
        ))}
      </fieldset>
      <p className={css.fact}>
        {vram ? (
          <>
            {t('form.vramFlag')} <code>{vram}</code>. {t('form.vramFilled')}
          </>
        ) : (
          t(
            draft.runtime === 'llamacpp'
              ? 'vram.llamacpp'
              : draft.runtime === 'ollama'
                ? 'vram.ollama'
                : 'vram.unknown',
          )
        )}
      </p>
    </FormCard>
  )
}
