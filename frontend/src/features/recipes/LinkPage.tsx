import { useQuery } from '@tanstack/react-query'
import { Alert, Button, Skeleton } from 'antd'
import { Link2, ShieldQuestion } from 'lucide-react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import type { Spec } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { StatusBadge } from '@/ui/StatusBadge'
import css from './recipes.module.css'

interface Asked {
  onLeave: () => void
}

function Answers({ onLeave, yes, onYes, disabled }: Asked & { yes: string; onYes: () => void; disabled: boolean }) {
  const { t } = useTranslation('recipes')
  return (
    <div className={css.foot}>
      <Button onClick={onLeave}>{t('link.no')}</Button>
      <Button type="primary" disabled={disabled} onClick={onYes}>
        {yes}
      </Button>
    </div>
  )
}

/** What a link to launch asks for, field by field. */
function RunLink({ spec, onLeave, onReview }: Asked & { spec: Spec; onReview: (spec: Spec) => void }) {
  const { t } = useTranslation('recipes')
  const fields = useQuery({
    queryKey: ['recipe-fields', spec],
    queryFn: ({ signal }) =>
      call('recipe-compare', { body: { left: spec, right: { image: '', resources: {} } }, signal }),
  })
  const outside = (spec.mounts ?? []).length > 0 || spec.command !== undefined
  return (
    <>
      <h1 className={css.linkTitle}>{t('link.runTitle')}</h1>
      <p className={css.text}>{t('link.runText')}</p>
      {outside ? <Alert type="warning" showIcon title={t('link.careful')} className={css.linkAlert ?? ''} /> : null}
      {fields.error ? (
        <ErrorState compact problem={asProblem(fields.error)} onRetry={() => void fields.refetch()} />
      ) : fields.data ? (
        <dl className={css.linkFields}>
          {fields.data
            .filter((field) => field.left !== '')
            .map((field) => (
              <div key={field.field}>
                <dt>{field.field}</dt>
                <dd>{field.left}</dd>
              </div>
            ))}
        </dl>
      ) : (
        <Skeleton active />
      )}
      <Answers onLeave={onLeave} yes={t('link.review')} onYes={() => onReview(spec)} disabled={!fields.data} />
    </>
  )
}

function OpenLink({ id, onLeave, onOpen }: Asked & { id: string; onOpen: (id: string) => void }) {
  const { t } = useTranslation('recipes')
  const session = useQuery({
    queryKey: ['link-session', id],
    queryFn: ({ signal }) => call('session', { path: { id }, signal }),
  })
  return (
    <>
      <h1 className={css.linkTitle}>{t('link.openTitle')}</h1>
      {session.error ? (
        <ErrorState compact problem={asProblem(session.error)} onRetry={() => void session.refetch()} />
      ) : session.data ? (
        <dl className={css.linkFields}>
          <div>
            <dt>{t('link.name')}</dt>
            <dd>{session.data.name}</dd>
          </div>
          <div>
            <dt>{t('link.status')}</dt>
            <dd>
              <StatusBadge status={session.data.status} />
            </dd>
          </div>
          <div>
            <dt>{t('link.agent')}</dt>
            <dd>{session.data.agent}</dd>
          </div>
        </dl>
      ) : (
        <Skeleton active />
      )}
      <Answers
        onLeave={onLeave}
        yes={t('link.open')}
        onYes={() => session.data && onOpen(session.data.id)}
        disabled={!session.data}
      />
    </>
  )
}

interface ProjectLinkProps extends Asked {
  address: string
  onProject: (address: string) => void
}

/** The repository that a link names, before anything of it is here. */
function ProjectLink({ address, onLeave, onProject }: ProjectLinkProps) {
  const { t } = useTranslation('recipes')
  return (
    <>
      <h1 className={css.linkTitle}>{t('link.projectTitle')}</h1>
      <p className={css.text}>{t('link.projectText')}</p>
      <dl className={css.linkFields}>
        <div>
          <dt>{t('link.address')}</dt>
          <dd>{address}</dd>
        </div>
      </dl>
      <Answers onLeave={onLeave} yes={t('link.goOn')} onYes={() => onProject(address)} disabled={false} />
    </>
  )
}

interface LinkPageProps extends Asked {
  /** The link; null where the address has none. */
  url: string | null
  onReview: (spec: Spec) => void
  onOpen: (id: string) => void
  onProject: (address: string) => void
}

/** A link from outside, shown before anything happens. */
export function LinkPage({ url, onLeave, onReview, onOpen, onProject }: LinkPageProps) {
  const { t } = useTranslation('recipes')
  const link = useQuery({
    queryKey: ['link', url],
    queryFn: ({ signal }) => call('link-read', { body: { url: url ?? '' }, signal }),
    enabled: url !== null,
  })
  if (url === null) {
    return (
      <EmptyState icon={Link2} title={t('link.none')}>
        <Button onClick={onLeave}>{t('link.no')}</Button>
      </EmptyState>
    )
  }
  return (
    <div className={css.linkPage}>
      <section className={css.linkCard}>
        <ShieldQuestion size={26} strokeWidth={1.5} aria-hidden />
        {link.error ? (
          <>
            <ErrorState problem={asProblem(link.error)} />
            <div className={css.foot}>
              <Button onClick={onLeave}>{t('link.no')}</Button>
            </div>
          </>
        ) : link.data?.spec ? (
          <RunLink spec={link.data.spec} onLeave={onLeave} onReview={onReview} />
        ) : link.data?.session ? (
          <OpenLink id={link.data.session} onLeave={onLeave} onOpen={onOpen} />
        ) : link.data?.project ? (
          <ProjectLink address={link.data.project} onLeave={onLeave} onProject={onProject} />
        ) : (
          <Skeleton active />
        )}
      </section>
    </div>
  )
}
