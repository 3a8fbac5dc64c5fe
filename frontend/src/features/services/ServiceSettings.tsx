import { App, Button, InputNumber, Switch } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { MAX_REPLICAS } from '@/api/rules.gen'
import type { Service } from '@/api/types.gen'
import { ServiceRules } from './ServiceRules'
import css from './services.module.css'
import { SettingRow } from './SettingRow'
import { parseSpan, type Span, writeSpan } from './span'
import { SpanInput } from './SpanInput'
import { useChange } from './useChange'

/** What is wanted of a service besides what it runs. A change makes no new revision. */
export function ServiceSettings({ service }: { service: Service }) {
  const { t } = useTranslation(['services', 'common'])
  const { modal } = App.useApp()
  const { busy, change } = useChange(service)
  const setPublic = (open: boolean) => {
    if (!open) return void change({ public: false })
    modal.confirm({
      title: t('services:public.askTitle', { name: service.name }),
      content: t('services:public.askText'),
      okText: t('services:public.go'),
      okButtonProps: { danger: true },
      cancelText: t('common:action.cancel'),
      onOk: () => change({ public: true }),
    })
  }
  return (
    <div className={css.parts}>
      <div className={css.rows}>
        <SettingRow label={t('services:setting.replicas')} text={t('services:setting.replicasText')}>
          <Replicas key={service.replicas} service={service} busy={busy} onSave={(n) => void change({ replicas: n })} />
        </SettingRow>
        <SettingRow label={t('services:setting.sleep')} text={t('services:setting.sleepText')}>
          <Sleep key={service.sleep ?? ''} service={service} busy={busy} onSave={(sleep) => void change({ sleep })} />
        </SettingRow>
        <SettingRow label={t('services:setting.maySleep')} text={t('services:setting.maySleepText')}>
          <Switch
            aria-label={t('services:setting.maySleep')}
            checked={service.maySleep ?? false}
            disabled={busy}
            onChange={(maySleep) => void change({ maySleep })}
          />
        </SettingRow>
        <SettingRow label={t('services:setting.public')} text={t('services:setting.publicText')}>
          <Switch
            aria-label={t('services:setting.public')}
            checked={service.public ?? false}
            disabled={busy}
            onChange={setPublic}
          />
        </SettingRow>
        <SettingRow label={t('services:setting.retry')} text={t('services:setting.retryText')}>
          <Switch
            aria-label={t('services:setting.retry')}
            checked={service.retry ?? false}
            disabled={busy}
            onChange={(retry) => void change({ retry })}
          />
        </SettingRow>
      </div>
      <ServiceRules service={service} />
    </div>
  )
}

function Replicas({ service, busy, onSave }: { service: Service; busy: boolean; onSave: (count: number) => void }) {
  const { t } = useTranslation(['services', 'common'])
  const [count, setCount] = useState<number | null>(service.replicas)
  const changed = count !== null && count !== service.replicas
  const save = () => changed && onSave(count)
  return (
    <>
      <InputNumber
        aria-label={t('services:setting.replicas')}
        style={{ width: 84 }}
        min={0}
        max={MAX_REPLICAS}
        precision={0}
        value={count}
        onChange={setCount}
        onPressEnter={save}
      />
      <Button disabled={!changed} loading={busy && changed} onClick={save}>
        {t('common:action.save')}
      </Button>
    </>
  )
}

const usual: Span = { value: 30, unit: 'm' }

function Sleep({ service, busy, onSave }: { service: Service; busy: boolean; onSave: (sleep: string) => void }) {
  const { t } = useTranslation(['services', 'common'])
  const [on, setOn] = useState(Boolean(service.sleep))
  const [span, setSpan] = useState(parseSpan(service.sleep ?? '') ?? usual)
  const entered = on ? writeSpan(span) : ''
  const changed = entered !== (service.sleep ?? '') && (!on || entered !== '')
  return (
    <>
      {on ? (
        <>
          <SpanInput control={{}} label={t('services:form.sleepAfter')} span={span} onChange={setSpan} />
          <Button disabled={!changed} loading={busy && changed} onClick={() => onSave(entered)}>
            {t('common:action.save')}
          </Button>
        </>
      ) : null}
      <Switch
        aria-label={t('services:setting.sleep')}
        checked={on}
        disabled={busy}
        onChange={(next) => {
          setOn(next)
          if (!next && service.sleep) onSave('')
        }}
      />
    </>
  )
}
