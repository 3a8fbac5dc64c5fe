import { Button, Skeleton } from 'antd'
import { Plus, Server } from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useParams, useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useAgents, useMachines, useOperations, useResources } from '@/api/hooks'
import { isReached } from '@/lib/connection'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { AddAgent } from './AddAgent'
import { AgentCard } from './AgentCard'
import { AgentDrawer } from './AgentDrawer'
import css from './agents.module.css'
import { byGroup, groupsOf, joinRows } from './join'

const none: never[] = []

/** Every agent that this computer knows: how it is reached, what its machine has, and what can be done with it. */
export function AgentsPage() {
  const { t } = useTranslation('agents')
  const { name } = useParams()
  const [params, setParams] = useSearchParams()
  const navigate = useNavigate()
  const query = useAgents()
  const agents = query.data ?? none
  const machines = useMachines().data ?? none
  const resources = useResources().data ?? none
  const operations = useOperations().data ?? none
  const rows = useMemo(
    () => joinRows(agents, machines, resources, operations),
    [agents, machines, resources, operations],
  )
  const groups = byGroup(rows)
  const open = rows.find((row) => row.agent.name === name)
  const add = () => setParams({ add: '1' })
  const note = query.data ? t('count', { count: agents.filter(isReached).length, total: agents.length }) : undefined
  return (
    <div className={css.page}>
      <PageHeader title={t('title')} note={note}>
        <Button icon={<Plus size={15} />} onClick={add}>
          {t('add.button')}
        </Button>
      </PageHeader>
      {query.error && !query.data ? (
        <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : null}
      {query.isPending ? <Waiting /> : null}
      {groups.map(([group, members]) => (
        <section key={group} className={css.group} aria-label={t('groupOf', { group })}>
          {groups.length > 1 ? <h2 className={css.groupName}>{group}</h2> : null}
          <div className={css.cards}>
            {members.map((row) => (
              <AgentCard
                key={row.agent.name}
                row={row}
                onOpen={() => void navigate(`/agents/${encodeURIComponent(row.agent.name)}`)}
              />
            ))}
          </div>
        </section>
      ))}
      {query.data && agents.every((a) => a.local) ? (
        <div className={css.invitation}>
          <EmptyState icon={Server} title={t('alone.title')} text={t('alone.text')}>
            <Button icon={<Plus size={15} />} onClick={add}>
              {t('add.button')}
            </Button>
          </EmptyState>
        </div>
      ) : null}
      {params.get('add') ? (
        <AddAgent
          groups={groupsOf(agents)}
          onClose={() => setParams({})}
          onShow={(added) => void navigate(`/agents/${encodeURIComponent(added)}`)}
        />
      ) : null}
      {name && query.data ? (
        <AgentDrawer
          key={name}
          name={name}
          row={open}
          groups={groupsOf(agents)}
          onClose={() => void navigate('/agents')}
          onRenamed={(to) => void navigate(`/agents/${encodeURIComponent(to)}`, { replace: true })}
        />
      ) : null}
    </div>
  )
}

function Waiting() {
  return (
    <div className={css.cards} aria-busy>
      {[0, 1].map((i) => (
        <div key={i} className={css.card}>
          <Skeleton active title={{ width: '40%' }} paragraph={{ rows: 3 }} />
        </div>
      ))}
    </div>
  )
}
