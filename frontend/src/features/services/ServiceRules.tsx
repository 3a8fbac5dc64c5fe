import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Service } from '@/api/types.gen'
import { RulesEditor } from './RulesEditor'
import css from './rules.module.css'
import { ruleDraftOf, ruleFault, ruleOf } from './rules'
import { useChange } from './useChange'

/** The rules of a service, with what they do now. A change of them makes no new revision. */
export function ServiceRules({ service }: { service: Service }) {
  const { t } = useTranslation(['services', 'common'])
  const { busy, change } = useChange(service)
  const stored = (service.rules ?? []).map(ruleDraftOf)
  const [entered, setEntered] = useState<typeof stored>()
  const [tried, setTried] = useState(false)
  const rules = entered ?? stored
  const changed = entered !== undefined && JSON.stringify(entered) !== JSON.stringify(stored)
  const reset = () => {
    setEntered(undefined)
    setTried(false)
  }
  const save = async () => {
    setTried(true)
    if (rules.some(ruleFault)) return
    if (await change({ rules: rules.map(ruleOf) })) reset()
  }
  return (
    <section className={css.section} aria-label={t('services:rule.title')}>
      <div>
        <h3 className={css.title}>{t('services:rule.title')}</h3>
        <p className={css.text}>{t('services:rule.text')}</p>
      </div>
      <RulesEditor
        rules={rules}
        states={changed ? undefined : service.scaling.rules}
        tried={tried}
        onChange={setEntered}
      />
      {changed ? (
        <div className={css.buttons}>
          <Button type="primary" loading={busy} onClick={() => void save()}>
            {t('services:rule.save')}
          </Button>
          <Button disabled={busy} onClick={reset}>
            {t('common:action.cancel')}
          </Button>
        </div>
      ) : null}
    </section>
  )
}
