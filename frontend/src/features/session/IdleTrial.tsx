import { useQuery } from '@tanstack/react-query'
import { Button, Input, InputNumber, Segmented } from 'antd'
import { FlaskConical } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import type { IdlePolicy, Session } from '@/api/types.gen'
import { formatExact } from '@/lib/time'
import { ErrorState } from '@/ui/ErrorState'
import { type IdleSettings, metricsOf, settingsOf, toPolicy } from './idleSettings'
import css from './IdleTrial.module.css'

/** Asks what settings, at first those of the session itself, would have made of it. It changes nothing. */
export function IdleTrial({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const [open, setOpen] = useState(false)
  if (open) return <Trial session={session} />
  return (
    <Button size="small" type="text" icon={<FlaskConical size={14} />} onClick={() => setOpen(true)}>
      {t('idle.simulate')}
    </Button>
  )
}

function Trial({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common'])
  const [settings, setSettings] = useState<IdleSettings>(() => settingsOf(session.spec))
  const [policy, setPolicy] = useState<IdlePolicy>(() => toPolicy(settings))
  const set = (next: Partial<IdleSettings>) => setSettings((old) => ({ ...old, ...next }))
  const length = (name: 'lifetime' | 'network' | 'window' | 'grace', hint: string) => (
    <Row label={t(`idle.${name}`)} key={name}>
      <Input
        size="small"
        aria-label={t(`idle.${name}`)}
        placeholder={hint}
        value={settings[name]}
        onChange={(e) => set({ [name]: e.target.value })}
      />
    </Row>
  )
  return (
    <div className={css.trial}>
      <form
        className={css.settings}
        onSubmit={(e) => {
          e.preventDefault()
          setPolicy(toPolicy(settings))
        }}
      >
        {length('lifetime', t('idle.noLimit'))}
        {session.spec.type === 'batch' ? null : length('network', t('idle.noLimit'))}
        {length('window', '30m')}
        {length('grace', t('idle.noGrace'))}
        {metricsOf(session.spec).map((name) => (
          <Row key={name} label={t('idle.below', { name: t(`common:idle.metric.${name}`) })}>
            <InputNumber
              size="small"
              aria-label={t('idle.below', { name: t(`common:idle.metric.${name}`) })}
              min={0}
              max={100}
              suffix="%"
              placeholder={t('idle.notJudged')}
              value={settings[name]}
              onChange={(value) => set({ [name]: value })}
            />
          </Row>
        ))}
        <div className={css.foot}>
          <Segmented
            size="small"
            aria-label={t('idle.when')}
            value={settings.any ? 'any' : 'all'}
            options={[
              { value: 'all', label: t('idle.all') },
              { value: 'any', label: t('idle.any') },
            ]}
            onChange={(value) => set({ any: value === 'any' })}
          />
          <Button
            size="small"
            htmlType="submit"
            disabled={JSON.stringify(toPolicy(settings)) === JSON.stringify(policy)}
          >
            {t('idle.try')}
          </Button>
        </div>
      </form>
      <Outcome id={session.id} policy={policy} />
    </div>
  )
}

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className={css.row}>
      <span>{label}</span>
      {children}
    </label>
  )
}

/** What the machine says of a policy, from what it measured. */
function Outcome({ id, policy }: { id: string; policy: IdlePolicy }) {
  const { t } = useTranslation('session')
  const { data, error, refetch } = useQuery({
    queryKey: ['idle-simulation', id, policy],
    queryFn: ({ signal }) => call('idle-simulation', { path: { id }, body: policy, signal }),
    staleTime: 15_000,
    retry: false,
    placeholderData: (old) => old,
  })
  if (error) return <ErrorState compact problem={asProblem(error)} onRetry={() => void refetch()} />
  return (
    <div className={css.outcome} role="status" aria-busy={!data}>
      {data ? (
        <>
          <b>
            {data.unknown
              ? t('idle.wouldBeUnknown')
              : data.ended && data.at
                ? t('idle.wouldEnd', { when: formatExact(data.at) })
                : t('idle.wouldLive')}
          </b>
          <div>{data.message}</div>
          <div className={css.dim}>{t('idle.since', { when: formatExact(data.since) })}</div>
        </>
      ) : null}
    </div>
  )
}
