import { Input } from 'antd'
import { useTranslation } from 'react-i18next'
import { useAgents } from '@/api/hooks'
import { Field } from './Field'
import { rules } from './owner'
import type { StepProps } from './StepProps'

/** For whom it is launched, on a machine that one rules and others use. */
export function OwnerField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const agents = useAgents().data ?? []
  if (!rules(draft, agents)) return null
  return (
    <Field label={t('owner.label')} note={t('optional')} issue={issues.at('owner')} hint={t('owner.hint')}>
      {(control) => (
        <Input
          {...control}
          value={draft.owner}
          maxLength={64}
          placeholder={t('owner.placeholder')}
          onChange={(e) => change({ owner: e.target.value })}
        />
      )}
    </Field>
  )
}
