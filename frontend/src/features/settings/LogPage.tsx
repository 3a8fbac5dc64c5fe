import { useQuery } from '@tanstack/react-query'
import { Button, Input, Skeleton } from 'antd'
import { RotateCw, ScrollText, Search } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { CopyDiagnostics } from './CopyDiagnostics'
import css from './settings.module.css'

/** Slipway's own log, newest lines first, for whoever looks for a fault. */
export function LogPage() {
  const { t } = useTranslation('settings')
  const [query, setQuery] = useState('')
  const log = useQuery({ queryKey: keys.log, queryFn: ({ signal }) => call('log', { signal }) })
  const shown = useMemo(
    () =>
      [...(log.data?.lines ?? [])].reverse().filter((line) => line.toLowerCase().includes(query.trim().toLowerCase())),
    [log.data, query],
  )
  return (
    <div className={css.logPage}>
      <PageHeader
        title={t('log.title')}
        note={log.data ? <code className={css.path}>{log.data.path}</code> : undefined}
      >
        <Input
          data-filter
          allowClear
          className={css.search ?? ''}
          prefix={<Search size={14} aria-hidden />}
          aria-label={t('log.filter')}
          placeholder={t('log.filter')}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <Button
          size="small"
          type="text"
          icon={<RotateCw size={13} />}
          loading={log.isFetching}
          onClick={() => void log.refetch()}
        >
          {t('log.refresh')}
        </Button>
        <CopyDiagnostics />
      </PageHeader>
      <div className={css.card}>
        {log.error && !log.data ? (
          <ErrorState problem={asProblem(log.error)} onRetry={() => void log.refetch()} />
        ) : log.isPending ? (
          <Skeleton active className={css.pad ?? ''} />
        ) : shown.length === 0 ? (
          <EmptyState icon={ScrollText} title={t(query ? 'log.noMatch' : 'log.empty')} />
        ) : (
          <pre className={css.log} tabIndex={0} aria-label={t('log.title')}>
            {shown.join('\n')}
          </pre>
        )}
      </div>
      <p className={css.note}>{t('log.note')}</p>
    </div>
  )
}
