import { useInfiniteQuery } from '@tanstack/react-query'
import { Button, Checkbox, Input, Select, Table, type TableColumnsType } from 'antd'
import { RefreshCw, ScrollText, Search } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'

import { asProblem, call } from '@/api/client'
import { useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { AuditEntry } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import { hostOf, matches, ok, peopleOf, times, type Act, type AuditFilter } from './audit'

/** How many are asked for at a time: the most that an agent tells at once. */
const MOST = 500

/** What an agent writes for its own person at its own machine. */
const HERE = 'this machine'

/** The log of an agent as far as it was read, oldest first. */
function useAudit(name: string, { person, failed, security }: Omit<AuditFilter, 'text'>, reached: boolean) {
  return useInfiniteQuery({
    queryKey: keys.audit(name, person, failed, security),
    queryFn: ({ pageParam, signal }) =>
      call('agent-audit', {
        path: { agent: name },
        query: {
          limit: MOST,
          ...(person ? { owner: person } : {}),
          failed,
          security,
          ...(pageParam ? { before: pageParam } : {}),
        },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (page: AuditEntry[]) => (page.length === MOST ? page[0]?.at : undefined),
    select: ({ pages }) => pages.toReversed().flat(),
    enabled: reached,
    retry: false,
  })
}

/** Who did what with an agent, when and from where, the newest first. */
export function AuditLog({ name, reached }: { name: string; reached: boolean }) {
  const { t } = useTranslation('agents')
  const [filter, setFilter] = useState<AuditFilter>({ text: '', person: '', failed: false, security: false })
  const book = useSessionBook().data
  const columns = useColumns()
  const everything = useAudit(name, { person: '', failed: false, security: false }, reached)
  const audit = useAudit(name, filter, reached)
  const set = (change: Partial<AuditFilter>) => setFilter((old) => ({ ...old, ...change }))
  const word = (method: string) => t(`log.act.${method as 'Launch'}`, { defaultValue: method })
  const acts: Act[] = (audit.data ?? [])
    .map((entry, index) => ({
      entry,
      key: index,
      word: word(entry.method),
      session: entry.session ? (book?.[entry.session]?.name ?? entry.session) : '',
    }))
    .toReversed()
  const shown = acts.filter((act) => matches(act, filter))
  if (!reached && !audit.data) return <EmptyState icon={ScrollText} title={t('log.unreached')} text={t('log.text')} />
  if (audit.error && !audit.data)
    return <ErrorState problem={asProblem(audit.error)} onRetry={() => void audit.refetch()} />
  return (
    <section className={css.section} aria-label={t('log.title')}>
      <div className={css.filters}>
        <Input
          type="search"
          prefix={<Search size={14} aria-hidden />}
          aria-label={t('log.filter')}
          placeholder={t('log.filter')}
          value={filter.text}
          onChange={(e) => set({ text: e.target.value })}
        />
        <Select
          aria-label={t('log.person')}
          value={filter.person}
          popupMatchSelectWidth={false}
          options={[
            { value: '', label: t('log.everybody') },
            ...peopleOf([...(everything.data ?? []), ...(audit.data ?? [])]).map((value) => ({ value, label: value })),
          ]}
          onChange={(person: string) => set({ person })}
        />
        <Checkbox checked={filter.failed} onChange={(e) => set({ failed: e.target.checked })}>
          {t('log.failed')}
        </Checkbox>
        <Checkbox checked={filter.security} onChange={(e) => set({ security: e.target.checked })}>
          {t('log.security')}
        </Checkbox>
        <Button
          icon={<RefreshCw size={14} />}
          aria-label={t('log.refresh')}
          loading={audit.isFetching && !audit.isFetchingNextPage}
          onClick={() => void audit.refetch()}
        />
      </div>
      <Table<Act>
        size="small"
        rowKey="key"
        columns={columns}
        dataSource={shown}
        loading={audit.isPending}
        pagination={{
          defaultPageSize: 25,
          showSizeChanger: true,
          pageSizeOptions: [25, 50, 100],
          size: 'small',
          showTotal: (total) => t('log.total', { count: total }),
        }}
        locale={{
          emptyText: (
            <EmptyState
              icon={ScrollText}
              title={t(acts.length > 0 ? 'log.noMatch' : 'log.empty')}
              text={t('log.text')}
            />
          ),
        }}
      />
      {audit.isFetchNextPageError ? (
        <ErrorState problem={asProblem(audit.error)} onRetry={() => void audit.fetchNextPage()} />
      ) : null}
      {audit.hasNextPage && !audit.isFetchNextPageError ? (
        <Button loading={audit.isFetchingNextPage} onClick={() => void audit.fetchNextPage()}>
          {t('log.older')}
        </Button>
      ) : null}
    </section>
  )
}

function useColumns(): TableColumnsType<Act> {
  const { t } = useTranslation('agents')
  const who = ({ owner, role }: AuditEntry) => (
    <>
      {owner || t('log.unknown')} <span className={css.dim}>{t(`role.${role as 'user'}`, { defaultValue: role })}</span>
    </>
  )
  return [
    { key: 'at', title: t('log.at'), width: 84, render: (_, { entry }) => <RelativeTime short at={entry.at} /> },
    { key: 'who', title: t('log.who'), width: 116, className: css.wrap ?? '', render: (_, { entry }) => who(entry) },
    {
      key: 'what',
      title: t('log.what'),
      className: css.wrap ?? '',
      render: (_, { entry, word, session }) => (
        <>
          {word} {session ? <Link to={`/sessions/${entry.session ?? ''}`}>{session}</Link> : null}{' '}
          {entry.target ? <code className={css.key}>{entry.target}</code> : null}
        </>
      ),
    },
    {
      key: 'from',
      title: t('log.from'),
      width: 124,
      className: css.wrap ?? '',
      render: (_, { entry }) => (
        <span title={[entry.from, entry.device].join(' ')}>
          {entry.from === HERE ? t('log.here') : hostOf(entry.from) || '–'}
        </span>
      ),
    },
    {
      key: 'outcome',
      title: t('log.outcome'),
      width: 110,
      className: css.wrap ?? '',
      render: (_, { entry }) => <Outcome entry={entry} />,
    },
  ]
}

/** How something ended, and how often. */
function Outcome({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation('agents')
  return (
    <>
      {ok(entry) ? (
        <span className={css.good}>{t('log.ok')}</span>
      ) : (
        <code className={css.refused}>{entry.outcome}</code>
      )}
      {times(entry)}
    </>
  )
}
