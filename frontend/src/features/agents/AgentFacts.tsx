import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import type { Feature } from '@/api/useLacks'
import { formatRtt, isReached } from '@/lib/connection'
import { ConnectionBadge } from '@/ui/ConnectionBadge'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import type { Row } from './join'

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

/** The state, the address and the versions of an agent. */
export function AgentFacts({ row }: { row: Row }) {
  const { t } = useTranslation(['agents', 'common'])
  const { agent, machine } = row
  const { connection } = agent
  const reached = isReached(agent)
  return (
    <dl className={css.list}>
      <Fact name={t('agents:fact.state')}>
        <span className={css.inline}>
          <ConnectionBadge state={connection.state} />{' '}
          <span className={css.dim}>
            <RelativeTime at={connection.since} />
          </span>
        </span>
      </Fact>
      {agent.local ? null : (
        <>
          <Fact name={t('agents:fact.address')}>
            <code>{agent.address}</code>
          </Fact>
          <Fact name={t('agents:fact.way')}>
            {[
              t(`agents:transport.${connection.transport as 'ssh'}`, { defaultValue: connection.transport }),
              connection.carriers > 0 ? t('agents:carriers', { count: connection.carriers }) : '',
              reached && connection.rttMs !== undefined ? t('agents:rtt', { rtt: formatRtt(connection.rttMs) }) : '',
            ]
              .filter(Boolean)
              .join(' · ')}
          </Fact>
          <Fact name={t('agents:fact.heard')}>
            {connection.lastHeard ? <RelativeTime at={connection.lastHeard} /> : t('common:reach.never')}
          </Fact>
        </>
      )}
      {machine ? (
        <Fact name={t('agents:fact.machine')}>
          {`${machine.hostname} · ${machine.os}/${machine.arch} · ${t(`common:engine.${machine.engine}`)}` +
            (machine.engine !== 'sim' && machine.engineVersion ? ` ${machine.engineVersion}` : '')}
        </Fact>
      ) : null}
      {machine?.warm ? <Fact name={t('agents:fact.warm')}>{t('agents:warm', { count: machine.warm })}</Fact> : null}
      {machine?.slurm ? (
        <Fact name={t('agents:fact.slurm')}>
          {machine.slurm.partitions.map((p) => p.name).join(', ')}
          <div className={css.dim}>{t('agents:slurmCalls', { count: machine.slurm.calls })}</div>
        </Fact>
      ) : null}
      {machine?.lacks?.length ? (
        <Fact name={t('agents:fact.lacks')}>
          {machine.lacks.map((feature) => (
            <div key={feature}>{t(`common:lacks.${feature as Feature}`, { defaultValue: feature })}</div>
          ))}
        </Fact>
      ) : null}
      {agent.version ? <Fact name={t('agents:fact.version')}>{agent.version}</Fact> : null}
      <Fact name={t('agents:fact.sessions')}>
        {agent.live > 0 ? (
          <Link to={`/sessions?q=${encodeURIComponent(`agent:${agent.name}`)}`}>
            {t('agents:sessions', { count: agent.live })}
          </Link>
        ) : (
          t('agents:sessions', { count: 0 })
        )}
      </Fact>
      {agent.owner ? (
        <Fact name={t('agents:fact.owner')}>
          {agent.role
            ? `${agent.owner} · ${t(`agents:role.${agent.role as 'user'}`, { defaultValue: agent.role })}`
            : agent.owner}
        </Fact>
      ) : null}
      {agent.fingerprint ? (
        <Fact name={t('agents:fact.key')}>
          <code className={css.key}>{agent.fingerprint}</code>
        </Fact>
      ) : null}
      {agent.addedAt ? (
        <Fact name={t('agents:fact.added')}>
          <RelativeTime at={agent.addedAt} />
        </Fact>
      ) : null}
    </dl>
  )
}
