import { Alert, AutoComplete, Button, Drawer, Input, Tabs } from 'antd'
import { ArrowUpCircle, Plug, RotateCw, ScanSearch, Server, Trash2 } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useSearchParams } from 'react-router'
import { updateAgent } from '@/api/calls'
import { asProblem, type ApiProblem } from '@/api/client'
import { useOperations } from '@/api/hooks'
import type { Agent, AgentUpdate, Operation } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { asksCode, formatRtt, isReached, needsPerson } from '@/lib/connection'
import { now } from '@/lib/now'
import { isRunning } from '@/lib/operation'
import { ConnectionBadge } from '@/ui/ConnectionBadge'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView, useOperationTitle } from '@/ui/OperationView'
import { RelativeTime } from '@/ui/Times'
import { Meters } from './AgentCard'
import { AgentDoctor } from './AgentDoctor'
import css from './agents.module.css'
import { AuditLog } from './AuditLog'
import { belongs, type Row } from './join'
import { KeyChange } from './KeyChange'
import { PairedDevices } from './PairedDevices'
import { PersonLimits } from './PersonLimits'
import { QuestionBox } from './QuestionBox'
import { RemoveDialog } from './RemoveDialog'
import { UntrustedAlert } from './UntrustedAlert'
import { useAgentActions } from './useAgentActions'

export interface AgentDrawerProps {
  name: string
  /** Undefined: no agent has this name. */
  row: Row | undefined
  groups: readonly string[]
  onClose: () => void
  onRenamed: (to: string) => void
}

/** Everything about one agent, over the list. */
export function AgentDrawer({ name, row, groups, onClose, onRenamed }: AgentDrawerProps) {
  const { t } = useTranslation('agents')
  return (
    <Drawer open size={680} title={name} onClose={onClose} mask={false} styles={{ body: { padding: 0 } }}>
      {row ? (
        <Parts row={row} groups={groups} onRenamed={onRenamed} />
      ) : (
        <EmptyState icon={Server} title={t('gone.title', { name })} text={t('gone.text')} />
      )}
    </Drawer>
  )
}

interface PartsProps {
  row: Row
  groups: readonly string[]
  onRenamed: (to: string) => void
}

/** An agent as whoever uses it sees it, and for those who rule it who else may, and who did what. */
function Parts({ row, groups, onRenamed }: PartsProps) {
  const { t } = useTranslation('agents')
  const [params, setParams] = useSearchParams()
  const { agent } = row
  const reached = isReached(agent)
  const login = agent.connection.transport === 'ssh'
  if (agent.local || agent.role !== 'admin') {
    return (
      <Content row={row} groups={groups} onRenamed={onRenamed}>
        {agent.local ? (
          <OwnKey name={agent.name} />
        ) : (
          <PairedDevices name={agent.name} reached={reached} login={login} />
        )}
      </Content>
    )
  }
  const people = (
    <div className={css.detail}>
      <PairedDevices name={agent.name} reached={reached} login={login} />
      <PersonLimits name={agent.name} reached={reached} />
    </div>
  )
  return (
    <Tabs
      className={css.tabs ?? ''}
      activeKey={params.get('part') ?? 'machine'}
      onChange={(part) => setParams(part === 'machine' ? {} : { part }, { replace: true })}
      items={[
        {
          key: 'machine',
          label: t('part.machine'),
          children: <Content row={row} groups={groups} onRenamed={onRenamed} />,
        },
        { key: 'people', label: t('part.people'), children: people },
        { key: 'log', label: t('part.log'), children: <AuditLog name={agent.name} reached={reached} /> },
      ]}
    />
  )
}

function Content({ row, groups, onRenamed, children }: PartsProps & { children?: ReactNode }) {
  const { t } = useTranslation(['agents', 'common'])
  const { agent } = row
  const actions = useAgentActions(agent.name)
  const [removing, setRemoving] = useState(false)
  const reached = isReached(agent)
  const busy = row.operation !== undefined
  const asks = needsPerson(agent)
  const { error, waits, nextTry } = agent.connection
  return (
    <div className={css.detail}>
      <div className={css.buttons}>
        {agent.upgrade ? (
          <Button
            type="primary"
            icon={<ArrowUpCircle size={15} />}
            disabled={busy || !reached}
            onClick={actions.upgrade}
          >
            {t('agents:upgradeTo', { version: agent.upgrade })}
          </Button>
        ) : null}
        <Button icon={<ScanSearch size={15} />} disabled={busy} onClick={actions.probe}>
          {t('agents:probeAgain')}
        </Button>
        {agent.local ? null : (
          <>
            <Button
              type={asks ? 'primary' : 'default'}
              icon={asks ? <Plug size={15} /> : <RotateCw size={15} />}
              disabled={busy}
              onClick={actions.reconnect}
            >
              {t(asks ? 'agents:connect' : reached ? 'agents:reconnect' : 'agents:retryNow')}
            </Button>
            <Button
              danger
              className={css.end ?? ''}
              icon={<Trash2 size={15} />}
              disabled={busy}
              onClick={() => setRemoving(true)}
            >
              {t('agents:remove.button')}
            </Button>
          </>
        )}
      </div>
      <UntrustedAlert agent={agent} />
      {agent.question ? <QuestionBox name={agent.name} question={agent.question} /> : null}
      {!reached && !agent.question && !busy ? ( // what goes on says more
        <Alert
          type="warning"
          showIcon
          title={error?.code === asksCode ? t('agents:asks') : error?.message || waits || t('agents:unreached')}
          description={
            <>
              {error?.code === asksCode ? (
                <div>{t('agents:asksHint')}</div>
              ) : error?.hint ? (
                <div>{error.hint}</div>
              ) : null}
              {asks ? <div>{t('agents:waitsForYou')}</div> : null}
              {nextTry ? (
                <div>
                  {t('agents:nextTry')} <RelativeTime at={nextTry} ahead />
                </div>
              ) : null}
              <div>{t('agents:asThen')}</div>
            </>
          }
        />
      ) : null}
      <Work agent={agent} />
      <section className={`${css.section} ${reached ? '' : css.unreached}`}>
        <Meters row={row} />
      </section>
      <Facts row={row} />
      <Naming key={agent.name} agent={agent} groups={groups} onRenamed={onRenamed} />
      <AgentDoctor name={agent.name} reached={reached} />
      {children}
      {removing ? <RemoveDialog agent={agent} reached={reached} onClose={() => setRemoving(false)} /> : null}
    </div>
  )
}

/** The key by which the agents that this computer is paired with know it. */
function OwnKey({ name }: { name: string }) {
  const { t } = useTranslation('agents')
  return (
    <section className={css.section} aria-label={t('rotate.heading')}>
      <h2 className={css.heading}>{t('rotate.heading')}</h2>
      <KeyChange name={name} local />
    </section>
  )
}

/** What goes on with the agent, or how the last of it went wrong. */
function Work({ agent }: { agent: Agent }) {
  const last = useOperations().data?.find((o) => belongs(o, agent))
  // What ended well long before the drawer was opened is no news.
  const [opened] = useState(now)
  if (!last || (!isRunning(last) && Date.parse(last.endedAt ?? '') < opened && last.state !== 'failed')) return null
  return <WorkOf operation={last} />
}

function WorkOf({ operation }: { operation: Operation }) {
  const title = useOperationTitle()
  const actions = useOperationActions(operation.id)
  return (
    <section className={css.section}>
      <h2 className={css.heading}>
        {title(operation)}{' '}
        <span className={css.dim}>
          <RelativeTime at={operation.startedAt} />
        </span>
      </h2>
      <div className={css.box}>
        <OperationView follow={isRunning(operation)} operation={operation} {...actions} />
      </div>
    </section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Facts({ row }: { row: Row }) {
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
        <Fact
          name={t('agents:fact.machine')}
        >{`${machine.hostname} · ${machine.os}/${machine.arch} · ${machine.engine === 'sim' ? t('common:engine.sim') : `Docker ${machine.engineVersion ?? ''}`}`}</Fact>
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

/** What the agent is called and the group that it is in. */
function Naming({
  agent,
  groups,
  onRenamed,
}: {
  agent: Agent
  groups: readonly string[]
  onRenamed: (to: string) => void
}) {
  const { t } = useTranslation(['agents', 'common'])
  const [name, setName] = useState(agent.name)
  const [group, setGroup] = useState(agent.group)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const change: AgentUpdate = {}
  if (name.trim() !== agent.name) change.name = name.trim()
  if (group.trim() !== agent.group) change.group = group.trim() || 'default'
  const changed = Object.keys(change).length > 0 && name.trim() !== ''
  const save = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const saved = await updateAgent(agent.name, change)
      if (saved.name !== agent.name) onRenamed(saved.name)
      else setGroup(saved.group)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <section className={css.section}>
      <form
        className={css.naming}
        onSubmit={(event) => {
          event.preventDefault()
          if (changed) void save()
        }}
      >
        <label>
          {t('agents:fact.name')}
          <Input value={name} disabled={agent.local} maxLength={64} onChange={(e) => setName(e.target.value)} />
        </label>
        <label>
          {t('agents:fact.group')}
          <AutoComplete
            value={group}
            options={groups.map((value) => ({ value }))}
            onChange={(value: string) => setGroup(value)}
          />
        </label>
        <Button htmlType="submit" loading={busy} disabled={!changed}>
          {t('common:action.save')}
        </Button>
      </form>
      {problem ? <ErrorState compact problem={problem} /> : null}
    </section>
  )
}
