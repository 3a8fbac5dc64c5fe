import { Switch } from 'antd'
import { Globe } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { FormCard } from './FormCard'
import css from './form.module.css'
import type { CardProps } from './ServiceForm'
import { SettingRow } from './SettingRow'
import { SpanInput } from './SpanInput'

/** When a service sleeps, and who may use it. */
export function BehaviourCard({ draft, faults, change }: CardProps) {
  const { t } = useTranslation('services')
  return (
    <FormCard title={t('form.behaviour')}>
      <div className={css.rows}>
        <SettingRow label={t('setting.sleep')} text={t('setting.sleepText')} fault={faults.sleep}>
          {draft.sleeps ? (
            <SpanInput
              control={{ status: faults.sleep ? 'error' : '' }}
              label={t('form.sleepAfter')}
              span={draft.sleep}
              onChange={(sleep) => change({ sleep })}
            />
          ) : null}
          <Switch aria-label={t('setting.sleep')} checked={draft.sleeps} onChange={(sleeps) => change({ sleeps })} />
        </SettingRow>
        <SettingRow label={t('setting.maySleep')} text={t('setting.maySleepText')}>
          <Switch
            aria-label={t('setting.maySleep')}
            checked={draft.maySleep}
            onChange={(maySleep) => change({ maySleep })}
          />
        </SettingRow>
        <SettingRow label={t('setting.public')} text={t('setting.publicText')}>
          <Switch
            aria-label={t('setting.public')}
            checked={draft.public}
            onChange={(open) => change({ public: open })}
          />
        </SettingRow>
      </div>
      {draft.public ? (
        <p className={css.notice}>
          <Globe size={15} aria-hidden />
          <span>{t('public.askText')}</span>
        </p>
      ) : null}
    </FormCard>
  )
}
