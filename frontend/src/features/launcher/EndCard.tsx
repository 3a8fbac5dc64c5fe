import { Checkbox, InputNumber } from 'antd'
import { useTranslation } from 'react-i18next'
import { MAX_COMMITS } from '@/api/rules.gen'
import { Card } from './Card'
import { Field } from './Field'
import { START_COMMITS } from './queueDraft'
import type { StepProps } from './StepProps'
import { useDraftLacks } from './useDraftLacks'

/** Whether an image is made of a session as it ends, and how many of them are kept. */
export function EndCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const { commitOnEnd } = draft
  const on = commitOnEnd !== null
  const lacks = useDraftLacks(draft)('commit')
  return (
    <Card
      title={t('end.title')}
      text={lacks || t(on ? 'end.text' : 'end.offText')}
      aside={
        <Checkbox
          checked={on}
          disabled={lacks !== '' && !on}
          onChange={(event) => change({ commitOnEnd: event.target.checked ? { keep: START_COMMITS } : null })}
        >
          {t('end.use')}
        </Checkbox>
      }
    >
      {on ? (
        <Field
          label={t('end.keep')}
          hint={t(draft.name.trim() === '' ? 'end.keepUnnamed' : 'end.keepHint', { name: draft.name.trim() })}
          issue={issues.at('commitOnEnd')}
        >
          {(control) => (
            <InputNumber
              {...control}
              style={{ width: 120 }}
              min={1}
              max={MAX_COMMITS}
              value={commitOnEnd.keep}
              onChange={(keep) => change({ commitOnEnd: { keep } })}
            />
          )}
        </Field>
      ) : null}
    </Card>
  )
}
