import { useQuery } from '@tanstack/react-query'
import { Button, Input, Select, Skeleton } from 'antd'
import { Brush, CloudDownload, Layers } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'

import { asProblem, call } from '@/api/client'
import { useAgents } from '@/api/hooks'
import { useImageDisk } from '@/api/images'
import { keys } from '@/api/keys'
import { formatBytes } from '@/lib/bytes'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { ListBar, ListCard, ListFill, ListPage } from '@/ui/ListPage'
import { PageHeader } from '@/ui/PageHeader'
import { Tabs } from '@/ui/Tabs'
import { CleanupDialog } from './CleanupDialog'
import { ImagesTable } from './ImagesTable'
import css from './images.module.css'
import { PullDialog } from './PullDialog'
import { RemoveDialog } from './RemoveDialog'
import { type ImageRow, inTab, nameOf, rowsOf, type Tab, tabs } from './rows'
import { Works } from './Works'

const none: never[] = []

/** The images of one machine: what they are, who uses them, and what they take. */
export function ImagesPage() {
  const { t } = useTranslation(['images', 'common'])
  const [params, setParams] = useSearchParams()
  const agents = useAgents().data ?? none
  const agent = params.get('agent') ?? agents.find((a) => a.local)?.name ?? agents[0]?.name ?? ''
  const query = useQuery({ queryKey: keys.images, queryFn: ({ signal }) => call('images', { signal }) })
  const disk = useImageDisk(agent)
  const rows = rowsOf(
    (query.data ?? none).filter((image) => image.agent === agent),
    disk.data,
  )
  const [tab, setTab] = useState<Tab>('all')
  const [search, setSearch] = useState('')
  const [pulling, setPulling] = useState<string | null>(null)
  const [removing, setRemoving] = useState<ImageRow | null>(null)
  const [cleaning, setCleaning] = useState(false)
  const wanted = search.trim().toLowerCase()
  const shown = rows.filter(
    (row) =>
      inTab(row, tab) && [nameOf(row.image), ...row.image.refs].some((text) => text.toLowerCase().includes(wanted)),
  )
  const problem = query.error ?? disk.error
  const pull = (
    <Button type="primary" icon={<CloudDownload size={15} />} onClick={() => setPulling('')}>
      {t('images:pull')}
    </Button>
  )
  const note = [
    t('images:count', { count: rows.filter((row) => inTab(row, 'all')).length }),
    disk.data ? t('images:onDisk', { amount: formatBytes(disk.data.total) }) : '',
  ]
    .filter(Boolean)
    .join(' · ')
  return (
    <ListPage>
      <PageHeader title={t('images:title')} note={query.data ? note : undefined}>
        {agents.length > 1 ? (
          <Select
            className={css.machine ?? ''}
            aria-label={t('images:machine')}
            value={agent}
            options={agents.map((a) => ({ value: a.name, label: a.name }))}
            onChange={(name) => setParams({ agent: name })}
          />
        ) : null}
        <Button icon={<Brush size={15} />} disabled={!disk.data} onClick={() => setCleaning(true)}>
          {t('images:clean')}
        </Button>
        {pull}
      </PageHeader>
      <Works agent={agent} onAgain={setPulling} />
      <ListCard>
        <ListBar>
          <Tabs
            label={t('images:tabs')}
            tabs={tabs.map((key) => ({
              key,
              label: t(`images:tab.${key}`),
              count: query.data && rows.filter((row) => inTab(row, key)).length,
            }))}
            value={tab}
            onChange={setTab}
          />
          <Input
            allowClear
            data-filter
            aria-label={t('images:search')}
            placeholder={t('images:search')}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </ListBar>
        {problem && rows.length === 0 ? (
          <ErrorState
            problem={asProblem(problem)}
            onRetry={() => {
              void query.refetch()
              void disk.refetch()
            }}
          />
        ) : query.isPending ? (
          <Skeleton active style={{ padding: 20 }} />
        ) : shown.length === 0 ? (
          <ListFill>
            {wanted ? (
              <EmptyState icon={Layers} title={t('images:noMatch')} />
            ) : tab === 'custom' ? (
              <EmptyState icon={Layers} title={t('images:emptyCustom')} text={t('images:emptyCustomText')} />
            ) : tab === 'unnamed' ? (
              <EmptyState icon={Layers} title={t('images:emptyUnnamed')} />
            ) : (
              <EmptyState icon={Layers} title={t('images:empty')} text={t('images:emptyText')}>
                {pull}
              </EmptyState>
            )}
          </ListFill>
        ) : (
          <ImagesTable rows={shown} onRemove={setRemoving} />
        )}
      </ListCard>
      {pulling !== null ? (
        <PullDialog image={pulling} agent={agent} agents={agents} onClose={() => setPulling(null)} />
      ) : null}
      {removing ? <RemoveDialog row={removing} agent={agent} onClose={() => setRemoving(null)} /> : null}
      {cleaning ? <CleanupDialog rows={rows} agent={agent} onClose={() => setCleaning(false)} /> : null}
    </ListPage>
  )
}
