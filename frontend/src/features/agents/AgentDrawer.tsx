import { Alert, Button, Drawer, Tabs } from 'antd'
import { ArrowUpCircle, Plug, RotateCw, ScanSearch, Server, Trash2 } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { useOperations } from '@/api/hooks'
import type { Agent, Operation } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { asksCode, isReached, needsPerson } from '@/lib/connection'
import { now } from '@/lib/now'
import { isRunning } from '@/lib/operation'
import { EmptyState } from '@/ui/EmptyState'
import { OperationView, useOperationTitle } from '@/ui/OperationView'
import { RelativeTime } from '@/ui/Times'
import { Meters } from './AgentCard'
import { AgentDoctor } from './AgentDoctor'
import { AgentFacts } from './AgentFacts'
import { AgentNaming } from './AgentNaming'
import css from './agents.module.css'
import { AuditLog } from './AuditLog'
import { belongs, type Row } from './join'
import { KeyChange } from './KeyChange'
import { PairedClients } from './PairedClients'
import { PersonLimits } from './PersonLimits'
import { QuestionBox } from './QuestionBox'
import { RemoveDialog } from './RemoveDialog'
import { UntrustedAlert } from './UntrustedAlert'
import { useAgentActions } from './useAgentActions'

interface AgentDrawerProps {
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
          <PairedClients name={agent.name} reached={reached} login={login} />
        )}
      </Content>
    )
  }
  const people = (
    <div className={css.detail}>
      <PairedClients name={agent.name} reached={reached} login={login} />
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
      <AgentFacts row={row} />
      <AgentNaming key={agent.name} agent={agent} groups={groups} onRenamed={onRenamed} />
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
