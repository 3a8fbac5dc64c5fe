import { useTranslation } from 'react-i18next'
import { FormCard } from './FormCard'
import css from './form.module.css'
import { RulesEditor } from './RulesEditor'
import type { CardProps } from './ServiceForm'

/** The rules of a new service, or of a new revision. */
export function ScalingCard({ draft, faults, change }: CardProps) {
  const { t } = useTranslation('services')
  const { rules: fault } = faults
  return (
    <FormCard title={t('rule.title')} text={t('rule.text')}>
      <RulesEditor rules={draft.rules} tried={fault !== undefined} onChange={(rules) => change({ rules })} />
      {fault?.hint ? (
        <p className={css.bad} role="alert">
          {fault.message} {fault.hint}
        </p>
      ) : null}
    </FormCard>
  )
}
