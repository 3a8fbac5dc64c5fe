import { useQuery, useQueryClient } from '@tanstack/react-query'
import { App, Button, Skeleton } from 'antd'
import { Gauge, Pencil, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { PersonLimit } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { ErrorState } from '@/ui/ErrorState'
import css from './agents.module.css'
import { EVERYBODY, LimitDialog } from './LimitDialog'

/** What each person may hold on an agent at a time, for those who rule it. */
export function PersonLimits({ name, reached }: { name: string; reached: boolean }) {
  const { t } = useTranslation(['agents', 'common'])
  const client = useQueryClient()
  const { modal, message } = App.useApp()
  const [editing, setEditing] = useState<string | null>(null) // the owner; empty: a new one
  const limits = useQuery({
    queryKey: keys.limits(name),
    queryFn: ({ signal }) => call('agent-limits', { path: { agent: name }, signal }),
    enabled: reached,
    retry: false,
  })
  const paired = useQuery({
    queryKey: keys.pairedClients(name),
    queryFn: ({ signal }) => call('paired-clients', { path: { agent: name }, signal }),
    enabled: reached,
    retry: false,
  })
  const known = limits.data?.limits ?? {}
  const owners = Object.keys(known).toSorted(
    (a, b) => Number(b === EVERYBODY) - Number(a === EVERYBODY) || a.localeCompare(b),
  )
  const people = [...new Set((paired.data ?? []).map((d) => d.owner))].filter(
    (owner) => owner !== '' && !(owner in known),
  )
  const refresh = () => client.invalidateQueries({ queryKey: keys.limits(name) })
  const remove = (owner: string) =>
    void modal.confirm({
      title: t(owner === EVERYBODY ? 'agents:limits.removeAll' : 'agents:limits.removeTitle', { owner }),
      content: t('agents:limits.removeText'),
      okText: t('agents:limits.remove'),
      cancelText: t('common:action.cancel'),
      okButtonProps: { danger: true },
      onOk: async () => {
        try {
          await call('agent-limit-unset', { path: { agent: name, owner } })
          await refresh()
        } catch (error) {
          const problem = asProblem(error)
          void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
        }
      },
    })
  return (
    <section className={css.section} aria-label={t('agents:limits.title')}>
      <div className={css.sectionHead}>
        <h3 className={css.heading}>{t('agents:limits.title')}</h3>
        <Button size="small" icon={<Plus size={14} />} disabled={!limits.data} onClick={() => setEditing('')}>
          {t('agents:limits.add')}
        </Button>
      </div>
      {reached ? null : <p className={css.small}>{t('agents:limits.unreached')}</p>}
      {limits.error && !limits.data ? (
        <ErrorState compact problem={asProblem(limits.error)} onRetry={() => void limits.refetch()} />
      ) : null}
      {reached && limits.isPending ? <Skeleton active title={false} paragraph={{ rows: 2 }} /> : null}
      {limits.data && owners.length === 0 ? <p className={css.small}>{t('agents:limits.none')}</p> : null}
      {owners.length > 0 ? (
        <ul className={css.checks}>
          {owners.map((owner) => (
            <Limit
              key={owner}
              owner={owner}
              limit={known[owner] ?? {}}
              onEdit={() => setEditing(owner)}
              onRemove={() => remove(owner)}
            />
          ))}
        </ul>
      ) : null}
      {editing === null ? null : (
        <LimitDialog
          agent={name}
          owner={editing}
          limit={known[editing] ?? {}}
          people={EVERYBODY in known ? people : [EVERYBODY, ...people]}
          taken={owners}
          onClose={() => setEditing(null)}
          onSaved={async () => {
            await refresh()
            setEditing(null)
          }}
        />
      )}
    </section>
  )
}

function Limit({
  owner,
  limit,
  onEdit,
  onRemove,
}: {
  owner: string
  limit: PersonLimit
  onEdit: () => void
  onRemove: () => void
}) {
  const { t } = useTranslation('agents')
  const amounts = [
    limit.sessions ? t('limits.ofSessions', { count: limit.sessions }) : '',
    limit.cpu ? t('limits.ofCpus', { count: limit.cpu }) : '',
    limit.memory ? t('limits.ofMemory', { memory: formatBytes(limit.memory) }) : '',
    limit.gpu ? t('limits.ofGpus', { gpus: limit.gpu / 1000 }) : '',
  ].filter(Boolean)
  return (
    <li className={css.device} data-owner={owner}>
      <Gauge size={15} aria-hidden />
      <div className={css.checkWords}>
        <b>{owner === EVERYBODY ? t('limits.everybody') : owner}</b>
        <div className={`${css.small} num`}>{amounts.length > 0 ? amounts.join(' · ') : t('limits.unlimited')}</div>
        {limit.folders?.length ? (
          <div className={css.small}>
            {t('limits.folders')}{' '}
            {limit.folders.map((folder) => (
              <code key={folder} className={css.key}>
                {folder}{' '}
              </code>
            ))}
          </div>
        ) : null}
        {limit.logins ? <div className={css.small}>{t('limits.mayLogin')}</div> : null}
      </div>
      <Button size="small" icon={<Pencil size={14} />} aria-label={t('limits.editOf', { owner })} onClick={onEdit} />
      <Button
        size="small"
        danger
        icon={<Trash2 size={14} />}
        aria-label={t('limits.removeOf', { owner })}
        onClick={onRemove}
      />
    </li>
  )
}
