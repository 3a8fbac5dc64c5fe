import { Button, Input, Skeleton } from 'antd'
import { BrainCircuit, MessageSquare, Plus, SearchX, WifiOff } from 'lucide-react'
import { useMemo, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useParams, useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useAgents } from '@/api/hooks'
import { useServices } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { isReached } from '@/lib/connection'
import { hintText, messageText } from '@/lib/phrases'
import { formatClock } from '@/lib/time'
import { answers } from '@/lib/serviceState'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { ListBar, ListCard, ListFill, ListPage } from '@/ui/ListPage'
import { PageHeader } from '@/ui/PageHeader'
import { Tabs } from '@/ui/Tabs'
import { ServiceDrawer } from './ServiceDrawer'
import { ServicesTable } from './ServicesTable'
import css from './services.module.css'
import { addressOf } from './states'

const none: never[] = []

type Group = 'all' | 'serving' | 'rest'
const groups: readonly Group[] = ['all', 'serving', 'rest']

const inGroup = (service: Service, group: Group) => group === 'all' || answers(service) === (group === 'serving')

/** The models that the machines serve, and over them the detail of the one that the address names. */
export function ServicesPage() {
  const { t } = useTranslation('services')
  const navigate = useNavigate()
  const { name } = useParams()
  const [params, setParams] = useSearchParams()
  const query = useServices()
  const agents = useAgents().data ?? none
  const services = query.data ?? none
  const [search, setSearch] = useState('')
  const group = groups.find((one) => one === params.get('show')) ?? 'all'
  const wanted = search.trim().toLowerCase()
  const rows = useMemo(
    () =>
      services
        .filter((s) => inGroup(s, group) && s.name.toLowerCase().includes(wanted))
        .toSorted((a, b) => a.name.localeCompare(b.name)),
    [services, group, wanted],
  )
  const setGroup = (next: Group) =>
    setParams(
      (old) => {
        const changed = new URLSearchParams(old)
        if (next === 'all') changed.delete('show')
        else changed.set('show', next)
        return changed
      },
      { replace: true },
    )
  const shown = group === 'all' ? '' : `show=${group}`
  const on = params.get('on')
  const open = name ? services.find((s) => s.name === name && (!on || s.agent === on)) : undefined
  const away = agents.filter((agent) => !isReached(agent)).map((agent) => agent.name)
  const add = (
    <Link to="/services/new">
      <Button type="primary" icon={<Plus size={15} />}>
        {t('new')}
      </Button>
    </Link>
  )
  return (
    <ListPage>
      <PageHeader title={t('title')} note={query.data ? t('count', { count: services.length }) : undefined}>
        {services.length > 0 ? (
          <Link to="/playground">
            <Button icon={<MessageSquare size={15} />}>{t('playground')}</Button>
          </Link>
        ) : null}
        {add}
      </PageHeader>
      {query.error && query.data ? (
        <Notice>
          <b>{t('old', { when: formatClock(query.dataUpdatedAt) })}</b> {messageText(asProblem(query.error))}{' '}
          {hintText(asProblem(query.error))} <code>{asProblem(query.error).code}</code>
        </Notice>
      ) : null}
      {query.data && away.length > 0 ? (
        <Notice>
          <b>{t('away', { count: away.length, names: away.join(', ') })}</b> {t('awayText')}
        </Notice>
      ) : null}
      <ListCard>
        <ListBar>
          <Tabs
            label={t('tabs')}
            tabs={groups.map((key) => ({
              key,
              label: t(`tab.${key}`),
              count: query.data && services.filter((s) => inGroup(s, key)).length,
            }))}
            value={group}
            onChange={setGroup}
          />
          <Input
            allowClear
            data-filter
            aria-label={t('search')}
            placeholder={t('search')}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </ListBar>
        {query.error && !query.data ? (
          <ListFill>
            <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
          </ListFill>
        ) : query.isPending ? (
          <Skeleton active style={{ padding: 20 }} />
        ) : rows.length > 0 ? (
          <ServicesTable
            rows={rows}
            several={agents.length > 1}
            open={open}
            linkOf={(service) => [addressOf(service), shown].filter(Boolean).join('&')}
          />
        ) : (
          <ListFill>
            {wanted ? (
              <EmptyState icon={SearchX} title={t('noMatch')}>
                <Button onClick={() => setSearch('')}>{t('clearSearch')}</Button>
              </EmptyState>
            ) : services.length > 0 ? (
              <EmptyState icon={BrainCircuit} title={t(group === 'serving' ? 'noneServing' : 'allServing')} />
            ) : (
              <EmptyState icon={BrainCircuit} title={t('empty.title')} text={t('empty.text')}>
                {add}
              </EmptyState>
            )}
          </ListFill>
        )}
      </ListCard>
      {name && query.data ? (
        <ServiceDrawer
          key={`${on}/${name}`}
          name={name}
          service={open}
          onClose={() => void navigate({ pathname: '/services', search: shown })}
        />
      ) : null}
    </ListPage>
  )
}

function Notice({ children }: { children: ReactNode }) {
  return (
    <div className={css.notice} role="status">
      <WifiOff size={15} aria-hidden />
      <span>{children}</span>
    </div>
  )
}
