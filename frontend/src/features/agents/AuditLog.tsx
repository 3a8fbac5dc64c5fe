import { useQuery } from '@tanstack/react-query'
import { Button, Checkbox, Input, Select, Table, type TableColumnsType } from 'antd'
import { RefreshCw, ScrollText, Search } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { fetchAudit } from '@/api/calls'
import { asProblem } from '@/api/client'
import { useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { AuditEntry } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import { hostOf, matches, ok, peopleOf, type Act, type AuditFilter } from './audit'

/** How many of the newest are asked for: the most that an agent tells at once. */
const MOST = 500

/** What an agent writes for its own person at its own machine. */
const HERE = 'this machine'

/** Who did what with an agent, when and from where, the newest first. */
export function AuditLog({ name, reached }: { name: string; reached: boolean }) {
  const { t } = useTranslation('agents')
  const [filter, setFilter] = useState<AuditFilter>({ text: '', person: '', failed: false })
  const book = useSessionBook().data
  const columns = useColumns()
  const audit = useQuery({ queryKey: keys.audit(name), queryFn: ({ signal }) => fetchAudit(name, MOST, signal), enabled: reached, retry: false })
  const set = (change: Partial<AuditFilter>) => setFilter((old) => ({ ...old, ...change }))
  const word = (method: string) => t(`log.act.${method as 'Launch'}`, { defaultValue: method })
  const acts: Act[] = (audit.data ?? []).map((entry, index) => ({ entry, key: index, word: word(entry.method), session: entry.session ? (book?.[entry.session]?.name ?? entry.session) : '' })).toReversed()
  const shown = acts.filter((act) => matches(act, filter))
  if (!reached && !audit.data) return <EmptyState icon={ScrollText} title={t('log.unreached')} text={t('log.text')} />
  if (audit.error && !audit.data) return <ErrorState problem={asProblem(audit.error)} onRetry={() => void audit.refetch()} />
  return (
    <section className={css.section} aria-label={t('log.title')}>
      <div className={css.filters}>
        <Input type="search" prefix={<Search size={14} aria-hidden />} aria-label={t('log.filter')} placeholder={t('log.filter')} value={filter.text} onChange={(e) => set({ text: e.target.value })} />
        <Select
          aria-label={t('log.person')}
          value={filter.person}
          popupMatchSelectWidth={false}
          options={[{ value: '', label: t('log.everybody') }, ...peopleOf(audit.data ?? []).map((value) => ({ value, label: value }))]}
          onChange={(person: string) => set({ person })}
        />
        <Checkbox checked={filter.failed} onChange={(e) => set({ failed: e.target.checked })}>
          {t('log.failed')}
        </Checkbox>
        <Button icon={<RefreshCw size={14} />} aria-label={t('log.refresh')} loading={audit.isFetching} onClick={() => void audit.refetch()} />
      </div>
      <Table<Act>
        size="small"
        rowKey="key"
        columns={columns}
        dataSource={shown}
        loading={audit.isPending}
        pagination={{ defaultPageSize: 25, showSizeChanger: true, pageSizeOptions: [25, 50, 100], size: 'small', showTotal: (total) => t('log.total', { count: total }) }}
        locale={{ emptyText: <EmptyState icon={ScrollText} title={t(acts.length > 0 ? 'log.noMatch' : 'log.empty')} text={t('log.text')} /> }}
      />
      {acts.length === MOST ? <p className={css.small}>{t('log.most', { count: MOST })}</p> : null}
    </section>
  )
}

function useColumns(): TableColumnsType<Act> {
  const { t } = useTranslation('agents')
  const who = ({ owner, role }: AuditEntry) => (
    <>
      {owner} <span className={css.dim}>{t(`role.${role as 'user'}`, { defaultValue: role })}</span>
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
          {word} {session ? <Link to={`/sessions/${entry.session ?? ''}`}>{session}</Link> : null} {entry.target ? <code className={css.key}>{entry.target}</code> : null}
        </>
      ),
    },
    { key: 'from', title: t('log.from'), width: 124, className: css.wrap ?? '', render: (_, { entry }) => <span title={[entry.from, entry.device].join(' ')}>{entry.from === HERE ? t('log.here') : hostOf(entry.from) || '–'}</span> },
    { key: 'outcome', title: t('log.outcome'), width: 110, className: css.wrap ?? '', render: (_, { entry }) => (ok(entry) ? <span className={css.good}>{t('log.ok')}</span> : <code className={css.refused}>{entry.outcome}</code>) },
  ]
}
