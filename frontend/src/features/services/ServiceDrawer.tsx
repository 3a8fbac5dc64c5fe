import { App, Button, Drawer } from 'antd'
import { BrainCircuit, CirclePlay, CircleStop, FileText, MessageSquare, RotateCw, Trash2, X } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useSearchParams } from 'react-router'
import type { Service } from '@/api/types.gen'
import { whyText } from '@/lib/phrases'
import { toneOf } from '@/lib/serviceState'
import { EmptyState } from '@/ui/EmptyState'
import { Tabs } from '@/ui/Tabs'
import { ServiceBadge } from '@/ui/ServiceBadge'
import { Events } from './Events'
import { Overview } from './Overview'
import { RemoveDialog } from './RemoveDialog'
import { Replicas } from './Replicas'
import { Revisions } from './Revisions'
import { ServiceRecipe } from './ServiceRecipe'
import { ServiceSettings } from './ServiceSettings'
import css from './services.module.css'
import { isStopped, playgroundOf } from './states'
import { Tokens } from './Tokens'
import { useChange } from './useChange'

const views = ['overview', 'replicas', 'revisions', 'tokens', 'events', 'settings'] as const
type View = (typeof views)[number]

interface ServiceDrawerProps {
  name: string
  /** Undefined: no service has this name. */
  service: Service | undefined
  onClose: () => void
}

/** Everything about one service, over the list. */
export function ServiceDrawer({ name, service, onClose }: ServiceDrawerProps) {
  const { t } = useTranslation(['services', 'common'])
  const close = <Button type="text" aria-label={t('common:action.close')} icon={<X size={16} />} onClick={onClose} />
  return (
    <Drawer
      open
      mask={false}
      size={720}
      closable={false}
      onClose={onClose}
      aria-label={name}
      styles={{ body: { padding: 0, overflow: 'hidden' } }}
    >
      {service ? (
        <Content service={service} close={close} onClose={onClose} />
      ) : (
        <div className={css.lost}>
          {close}
          <EmptyState icon={BrainCircuit} title={t('services:gone.title', { name })} text={t('services:gone.text')} />
        </div>
      )}
    </Drawer>
  )
}

function Content({ service, close, onClose }: { service: Service; close: ReactNode; onClose: () => void }) {
  const { t } = useTranslation('services')
  const [params, setParams] = useSearchParams()
  const view = views.find((one) => one === params.get('view')) ?? 'overview'
  const setView = (next: View) =>
    setParams(
      (old) => {
        const changed = new URLSearchParams(old)
        if (next === 'overview') changed.delete('view')
        else changed.set('view', next)
        return changed
      },
      { replace: true },
    )
  const counts: Partial<Record<View, number>> = {
    replicas: service.live.length,
    revisions: service.revisions.length,
    tokens: service.tokens.length,
  }
  return (
    <div className={css.frame}>
      <div className={css.head}>
        <div className={css.top}>
          <div className={css.titles}>
            <h2 className={css.title}>{service.name}</h2>
            <div className={css.sub}>
              <ServiceBadge state={service.state} />
              <span>{t('on', { machine: service.agent })}</span>
              <span>{t('revision', { number: service.revision })}</span>
            </div>
          </div>
          {close}
        </div>
        {service.why && service.state !== 'READY' ? (
          <p className={`${css.reason} ${css[`reason-${toneOf(service.state)}`] ?? ''}`}>{whyText(service)}</p>
        ) : null}
        <Buttons service={service} onRemoved={onClose} />
        <Tabs
          label={t('view.label')}
          tabs={views.map((key) => ({
            key,
            label: t(`view.${key}`),
            ...(key in counts ? { count: counts[key] } : {}),
          }))}
          value={view}
          onChange={setView}
        />
      </div>
      <div className={css.body}>
        {view === 'overview' ? <Overview service={service} onTokens={() => setView('tokens')} /> : null}
        {view === 'replicas' ? <Replicas service={service} /> : null}
        {view === 'revisions' ? <Revisions service={service} /> : null}
        {view === 'tokens' ? <Tokens service={service} /> : null}
        {view === 'events' ? <Events service={service} /> : null}
        {view === 'settings' ? <ServiceSettings service={service} /> : null}
      </div>
    </div>
  )
}

function Buttons({ service, onRemoved }: { service: Service; onRemoved: () => void }) {
  const { t } = useTranslation(['services', 'common'])
  const { modal } = App.useApp()
  const { busy, change } = useChange(service)
  const [removing, setRemoving] = useState(false)
  const [recipe, setRecipe] = useState(false)
  const stop = () =>
    void modal.confirm({
      title: t('services:stop.title', { name: service.name }),
      content: t('services:stop.text'),
      okText: t('services:stop.go'),
      cancelText: t('common:action.cancel'),
      onOk: () => change({ replicas: 0 }),
    })
  return (
    <div className={css.buttons}>
      {service.state === 'FAILED' ? (
        <Button
          type="primary"
          icon={<RotateCw size={14} />}
          loading={busy}
          onClick={() => void change({ tryAgain: true })}
        >
          {t('services:tryAgain')}
        </Button>
      ) : null}
      {isStopped(service) ? (
        <Button
          type="primary"
          icon={<CirclePlay size={15} />}
          loading={busy}
          onClick={() => void change({ replicas: 1 })}
        >
          {t('services:start')}
        </Button>
      ) : (
        <Button icon={<CircleStop size={15} />} disabled={busy} onClick={stop}>
          {t('services:stop.go')}
        </Button>
      )}
      <Button icon={<FileText size={14} />} onClick={() => setRecipe(true)}>
        {t('services:recipe.button')}
      </Button>
      {isStopped(service) ? null : (
        <Link to={playgroundOf(service)}>
          <Button icon={<MessageSquare size={14} />}>{t('services:playground')}</Button>
        </Link>
      )}
      <Button danger className={css.end ?? ''} icon={<Trash2 size={14} />} onClick={() => setRemoving(true)}>
        {t('services:remove.button')}
      </Button>
      {recipe ? <ServiceRecipe of={service} onClose={() => setRecipe(false)} /> : null}
      {removing ? <RemoveDialog service={service} onClose={() => setRemoving(false)} onRemoved={onRemoved} /> : null}
    </div>
  )
}
