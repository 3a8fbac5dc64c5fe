import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { environmentTitle } from '@/api/environment'
import { useAgents, useEnvironments, useLatestUsage } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { formatBytes, parseBytes } from '@/lib/bytes'
import { keptHome } from '@/api/home'
import { isLive } from '@/lib/status'
import { formatExact } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { LevelText } from '@/ui/LevelBadge'
import { SlurmWords } from '@/ui/SlurmWords'
import { Elapsed, RelativeTime } from '@/ui/Times'
import { useAcceleratorText } from '@/ui/useAcceleratorText'
import { cpuRanges } from './cpuRanges'
import { Grants } from './Kernels'
import css from './SessionDrawer.module.css'

function Fact({ name, wide, children }: { name: string; wide?: boolean; children: ReactNode }) {
  return (
    <>
      <dt className={wide ? css.wideName : undefined}>{name}</dt>
      <dd className={wide ? css.wide : undefined}>{children}</dd>
    </>
  )
}

function Allocation({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const { cpu = 1, memory, shm } = session.spec.resources
  const parts = [t('fact.cpuCount', { count: cpu }), formatBytes(parseBytes(memory) ?? 0)]
  const shared = parseBytes(shm)
  if (shared) parts.push(t('fact.shm', { amount: formatBytes(shared) }))
  if (session.processes) parts.push(t('fact.processes', { count: session.processes }))
  return (
    <>
      {parts.join(' · ')}
      {(session.spec.cluster ?? 1) > 1 ? <span className={css.dim}> {t('fact.each')}</span> : null}
      {session.grants.cpus.length > 0 ? (
        <span className={css.dim}> ({t('fact.cpus', { list: cpuRanges(session.grants.cpus) })})</span>
      ) : null}
    </>
  )
}

/** What is mounted where: what was asked for, then a home that is kept and the folders that always are. */
function mountsOf(session: Session) {
  const asked = (session.spec.mounts ?? []).map((m) => ({
    ...m,
    source: m.folder ? [m.folder, m.path].filter(Boolean).join('/') : m.source,
    auto: false,
  }))
  const home = keptHome(session)
  const others = session.folders.filter((f) => f.auto || (f === home && !asked.some((m) => m.target === f.target)))
  return [...asked, ...others.map((f) => ({ ...f, source: f.name }))]
}

function Mounts({ mounts }: { mounts: ReturnType<typeof mountsOf> }) {
  const { t } = useTranslation('session')
  return (
    <>
      {mounts.map((mount) => (
        <div key={mount.target} className={css.mount}>
          <span className={css.mono}>{mount.source}</span>
          <span className={css.dim}>→</span>
          <span className={css.mono}>{mount.target}</span>
          {mount.readOnly ? <span className={css.chip}>{t('fact.readOnly')}</span> : null}
          {mount.auto ? <span className={css.chip}>{t('fact.auto')}</span> : null}
        </div>
      ))}
    </>
  )
}

function Chips({ items }: { items: (string | number)[] }) {
  return (
    <div className={css.chips}>
      {items.map((item) => (
        <span key={item} className={css.chip}>
          {item}
        </span>
      ))}
    </div>
  )
}

/** Everything that is known of a session, in two columns; what was not asked for takes no room. */
export function Facts({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common', 'launcher'])
  const usage = useLatestUsage(session.id)
  const acceleratorText = useAcceleratorText()
  const { spec } = session
  const environment = environmentTitle(useEnvironments().data ?? [], session.image)
  const mounts = mountsOf(session)
  const agent = useAgents().data?.find(({ name }) => name === session.agent)
  const floats = session.status === 'PENDING' ? session.floats : undefined
  const anothers = Boolean(agent?.owner) && agent?.owner !== session.owner
  return (
    <dl className={css.facts}>
      <Fact name={t('session:fact.id')}>
        <span className={css.copyable}>
          <span className={css.mono}>{session.id}</span>
          <CopyButton text={session.id} label={t('session:action.copyId')} />
        </span>
      </Fact>
      <Fact name={t('session:fact.type')}>{t(`common:type.${session.type}`)}</Fact>
      {spec.serving?.service ? (
        <Fact name={t('session:fact.service')} wide>
          <Link to={`/services/${encodeURIComponent(spec.serving.service)}?on=${encodeURIComponent(session.agent)}`}>
            {t('session:fact.serviceOf', { name: spec.serving.service, revision: spec.serving.revision ?? 1 })}
          </Link>
        </Fact>
      ) : null}
      {environment ? (
        <Fact name={t('session:fact.environment')} wide>
          {environment}
        </Fact>
      ) : null}
      <Fact name={t('session:fact.image')} wide>
        <span className={css.copyable}>
          <span className={css.mono}>{session.image}</span>
          <CopyButton text={session.image} label={t('session:action.copyImage')} />
        </span>
      </Fact>
      <Fact name={t('session:fact.allocation')} wide>
        <Allocation session={session} />
      </Fact>
      {session.spec.accelerator ? (
        <Fact name={t('session:fact.accelerator')} wide>
          <div className={css.accelerator}>
            <span>
              {acceleratorText(session.spec.accelerator)}
              {(spec.cluster ?? 1) > 1 ? <span className={css.dim}> {t('session:fact.each')}</span> : null}
            </span>
            {session.grants.gpus.length > 0 ? <Grants grants={session.grants.gpus} agent={session.agent} /> : null}
            {session.enforcement ? (
              <LevelText
                level={session.enforcement}
                whole={session.grants.gpus.length > 0 && session.grants.gpus.every((g) => g.whole)}
              />
            ) : null}
          </div>
        </Fact>
      ) : null}
      {spec.slurm ? (
        <Fact name={t('launcher:slurm.title')} wide>
          <SlurmWords slurm={spec.slurm} />
        </Fact>
      ) : null}
      {spec.setup ? (
        <Fact name={t('session:fact.setup')} wide>
          <pre className={css.code}>{spec.setup}</pre>
        </Fact>
      ) : null}
      {spec.command ? (
        <Fact name={t('session:fact.command')} wide>
          <pre className={css.code}>{spec.command}</pre>
        </Fact>
      ) : null}
      <Fact name={t('session:fact.created')}>
        <RelativeTime at={session.createdAt} />
      </Fact>
      <Fact name={t('session:fact.started')}>{session.startedAt ? <RelativeTime at={session.startedAt} /> : '–'}</Fact>
      {session.startedAt ? (
        <Fact name={t('session:fact.elapsed')}>
          <Elapsed from={session.startedAt} to={session.terminatedAt} />
        </Fact>
      ) : null}
      {session.terminatedAt ? (
        <Fact name={t('session:fact.ended')}>
          <RelativeTime at={session.terminatedAt} />
        </Fact>
      ) : null}
      <Fact name={t('session:fact.agent')} wide={floats !== undefined}>
        {session.agent}
        {floats ? (
          <span className={css.dim}>
            {' · '}
            {floats.group ? t('session:fact.floatsIn', { group: floats.group }) : t('session:fact.floats')}
          </span>
        ) : null}
      </Fact>
      {anothers ? <Fact name={t('session:fact.owner')}>{session.owner}</Fact> : null}
      {session.type === 'batch' && !isLive(session.status) ? (
        <Fact name={t('session:fact.result')}>{t(`common:result.${session.result}`)}</Fact>
      ) : null}
      {session.status === 'RUNNING' && usage ? <Fact name={t('session:fact.processes')}>{usage.pids}</Fact> : null}
      <Fact name={t('session:fact.priority')}>{session.priority}</Fact>
      {spec.label ? <Fact name={t('session:fact.label')}>{spec.label}</Fact> : null}
      {(spec.cluster ?? 1) > 1 ? (
        <Fact name={t('session:fact.cluster')}>{t('session:fact.kernels', { count: spec.cluster })}</Fact>
      ) : null}
      {spec.pendingTimeout ? <Fact name={t('session:fact.pendingTimeout')}>{spec.pendingTimeout}</Fact> : null}
      {spec.timeout ? <Fact name={t('session:fact.timeout')}>{spec.timeout}</Fact> : null}
      {spec.commitOnEnd ? (
        <Fact name={t('session:fact.commitOnEnd')}>{t('session:fact.newest', { count: spec.commitOnEnd })}</Fact>
      ) : null}
      {spec.notBefore ? <Fact name={t('session:fact.notBefore')}>{formatExact(spec.notBefore)}</Fact> : null}
      {spec.threads ? <Fact name={t('session:fact.threads')}>{spec.threads}</Fact> : null}
      {mounts.length > 0 ? (
        <Fact name={t('session:fact.mounts')} wide>
          <Mounts mounts={mounts} />
        </Fact>
      ) : null}
      {spec.env?.length ? (
        <Fact name={t('session:fact.env')} wide>
          <Chips items={spec.env.map((v) => v.name)} />
        </Fact>
      ) : null}
      {spec.admin ? <Fact name={t('session:fact.admin')}>{t('session:fact.adminText')}</Fact> : null}
      {spec.secrets?.length ? (
        <Fact name={t('session:fact.secrets')} wide>
          <Chips items={spec.secrets} />
        </Fact>
      ) : null}
      {spec.noSSH ? <Fact name={t('session:fact.ssh')}>{t('session:fact.noSSH')}</Fact> : null}
      {spec.ports?.length ? (
        <Fact name={t('session:fact.ports')} wide>
          <Chips items={spec.ports} />
        </Fact>
      ) : null}
    </dl>
  )
}
