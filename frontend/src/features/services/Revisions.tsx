import { App, Button } from 'antd'
import { Plus, Undo2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import type { Revision, Service, Spec } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { RelativeTime } from '@/ui/Times'
import css from './services.module.css'
import { useChange } from './useChange'
import { actionText, joinWords } from './words'

/** What a service runs and ran, newest first, with a way back. */
export function Revisions({ service }: { service: Service }) {
  const { t } = useTranslation(['services', 'common'])
  const { modal } = App.useApp()
  const { busy, change } = useChange(service)
  const ask = ({ number }: Revision) =>
    void modal.confirm({
      title: t('services:rollBack.title', { name: service.name, number }),
      content: t('services:rollBack.text'),
      okText: t('services:rollBack.go'),
      cancelText: t('common:action.cancel'),
      onOk: () => change({ revision: number }),
    })
  return (
    <div className={css.parts}>
      <div className={css.sectionHead}>
        <p className={css.small}>{t('services:revisionsText')}</p>
        <Link to={`/services/new?of=${encodeURIComponent(service.name)}&on=${encodeURIComponent(service.agent)}`}>
          <Button icon={<Plus size={14} />}>{t('services:newRevision')}</Button>
        </Link>
      </div>
      <ol className={css.cards}>
        {service.revisions.map((revision) => (
          <li key={revision.number} className={css.card}>
            <div className={css.cardHead}>
              <h3>{t('services:revision', { number: revision.number })}</h3>
              {revision.number === service.revision ? (
                <span className={css.mark}>
                  {t(service.state === 'UPDATING' ? 'services:target' : 'services:current')}
                </span>
              ) : null}
              <span className={css.dim}>
                <RelativeTime at={revision.createdAt} />
              </span>
              {revision.number === service.revision ? null : (
                <Button
                  size="small"
                  className={css.end ?? ''}
                  icon={<Undo2 size={13} />}
                  disabled={busy}
                  onClick={() => ask(revision)}
                >
                  {t('services:rollBack.button')}
                </Button>
              )}
            </div>
            <RevisionFacts spec={revision.spec} />
          </li>
        ))}
      </ol>
    </div>
  )
}

function RevisionFacts({ spec }: { spec: Spec }) {
  const { t } = useTranslation('services')
  const { serving } = spec
  const command = serving?.command ?? []
  const mounts = (spec.mounts ?? []).map((m) => [m.folder ?? m.source, m.target].filter(Boolean).join(' → '))
  return (
    <dl className={css.facts}>
      <dt>{t('fact.image')}</dt>
      <dd>
        <code>{spec.image}</code>
      </dd>
      {serving?.preStart ? (
        <>
          <dt>{t('preview.before')}</dt>
          <dd>
            <pre className={css.command}>{serving.preStart.map(actionText).join('\n')}</pre>
          </dd>
        </>
      ) : null}
      <dt>{t('fact.command')}</dt>
      <dd>
        {command.length > 0 ? <pre className={css.command}>{joinWords(command)}</pre> : <i>{t('fact.ownCommand')}</i>}
      </dd>
      <dt>{t('fact.resources')}</dt>
      <dd>
        <Amounts spec={spec} />
      </dd>
      <dt>{t('fact.port')}</dt>
      <dd>
        <code>
          :{serving?.port}
          {serving?.health?.path ?? '/health'}
        </code>
      </dd>
      {mounts.length > 0 ? (
        <>
          <dt>{t('fact.folders')}</dt>
          <dd>
            <code>{mounts.join(', ')}</code>
          </dd>
        </>
      ) : null}
    </dl>
  )
}

/** What each replica of a revision has. */
function Amounts({ spec }: { spec: Spec }) {
  const { t } = useTranslation('services')
  const { accelerator: a } = spec
  const gpu = !a
    ? t('amount.noGpu')
    : a.devices
      ? t('amount.devices', { count: a.devices })
      : a.shares
        ? t('amount.share', { percent: a.shares / 10 })
        : a.memory
          ? t('amount.vram', { amount: formatBytes(a.memory) })
          : a.profile
            ? t('amount.mig', { profile: a.profile, count: a.count ?? 1 })
            : t('amount.noGpu')
  return (
    <span className="num">
      {[t('amount.cpus', { count: spec.resources.cpu ?? 0 }), formatBytes(spec.resources.memory ?? 0), gpu].join(' · ')}
    </span>
  )
}
