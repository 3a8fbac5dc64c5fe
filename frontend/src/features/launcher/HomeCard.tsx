import { Checkbox } from 'antd'
import { useTranslation } from 'react-i18next'
import { useSettings } from '@/api/hooks'
import { Card } from './Card'
import { Field } from './Field'
import { homeOf, START_KEEP } from './home'
import { SpanInput } from './SpanInput'
import type { StepProps } from './StepProps'

/** Whether the home directory is kept after the session, and for how long. */
export function HomeCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const home = homeOf(draft, useSettings().data?.keepHome)
  if (home && 'folder' in home)
    return (
      <Card title={t('home.title')} text={t('home.isFolder', home)}>
        {null}
      </Card>
    )
  return (
    <Card
      title={t('home.title')}
      text={t(home ? 'home.text' : 'home.offText')}
      aside={
        <Checkbox
          checked={home !== null}
          onChange={(event) => change({ keepHome: { span: event.target.checked ? START_KEEP : null } })}
        >
          {t('home.use')}
        </Checkbox>
      }
    >
      {home ? (
        <Field label={t('home.keep')} hint={t('home.keepHint')} issue={issues.at('keepHome')}>
          {(control) => (
            <SpanInput
              control={control}
              label={t('home.keep')}
              span={home.keep}
              onChange={(span) => change({ keepHome: { span } })}
            />
          )}
        </Field>
      ) : null}
    </Card>
  )
}
