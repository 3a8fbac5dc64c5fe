import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { isUnjudged } from '@/lib/idle'
import { now } from '@/lib/now'
import { IdleChecks, IdleLegend, KeepButtons } from '@/ui/IdleParts'
import { IdleTrial } from './IdleTrial'
import css from './SessionDrawer.module.css'

/** The idle checks of a running session with their countdowns, and the way to keep it. */
export function IdleSection({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useSessionActions()
  const [legend, setLegend] = useState(false)
  if (session.status !== 'RUNNING') return null
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t('common:idle.title')}</h3>
        {session.idle.length > 0 ? <KeepButtons onKeep={(hours) => actions.keep([session.id], hours)} /> : null}
      </div>
      <IdleChecks
        checks={session.idle}
        keepUntil={session.keepUntil}
        unjudged={isUnjudged(session.idle, session.spec.idle, session.startedAt, now())}
      />
      <div className={css.idleFoot}>
        <IdleTrial session={session} />
        {session.idle.length > 0 && !legend ? (
          <Button size="small" type="text" onClick={() => setLegend(true)}>
            {t('common:idle.legend')}
          </Button>
        ) : null}
      </div>
      {legend ? <IdleLegend metrics={session.idle.some((c) => c.metrics.length > 0)} /> : null}
    </section>
  )
}
