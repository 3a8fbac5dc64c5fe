import type { UseQueryResult } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import { Download, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { Tabs } from '@/ui/Tabs'
import { Controls } from './Controls'
import css from './usage.module.css'
import { views, type UsageProps } from './useUsageState'

/** The head of the page, with what is chosen for all of it. Without a download there is nothing to save. */
function Head({ state, change, download }: UsageProps & { download: (() => void) | undefined }) {
  const { t } = useTranslation('usage')
  return (
    <>
      <PageHeader title={t('title')}>
        <Controls state={state} change={change} />
        <Button icon={<Download size={14} />} disabled={!download} onClick={download}>
          CSV
        </Button>
      </PageHeader>
      <Tabs
        label={t('view.label')}
        tabs={views.map((key) => ({ key, label: t(`view.${key}`) }))}
        value={state.view}
        onChange={(view) => change({ view })}
      />
    </>
  )
}

interface FrameProps<T> extends UsageProps {
  report: UseQueryResult<T>
  download: () => void
  /** In place of a report without rows. */
  empty: ReactNode
  children: (data: T) => ReactNode
}

/** A page around a report: while it is asked for, without rows, and if it failed. */
export function Frame<T extends { rows: readonly unknown[]; missing: readonly string[] }>({
  state,
  change,
  report,
  download,
  empty,
  children,
}: FrameProps<T>) {
  const { data } = report
  const full = data !== undefined && data.rows.length > 0
  return (
    <div className={css.page}>
      <Head state={state} change={change} download={full ? download : undefined} />
      {report.error && !data ? (
        <ErrorState problem={asProblem(report.error)} onRetry={() => void report.refetch()} />
      ) : null}
      {!data && !report.error ? <Waiting /> : null}
      <Missing agents={data?.missing ?? []} />
      {data && !full ? empty : null}
      {full ? <div className={`${css.body} ${report.isPlaceholderData ? css.old : ''}`}>{children(data)}</div> : null}
    </div>
  )
}

/** Which machines are not in the sums. */
function Missing({ agents }: { agents: readonly string[] }) {
  const { t } = useTranslation('usage')
  if (agents.length === 0) return null
  return (
    <div className={css.missing} role="status">
      <TriangleAlert size={15} aria-hidden /> {t('missing', { agents: agents.join(', ') })}
    </div>
  )
}

/** One figure with its name, and what explains it. */
export function Tile({ name, main, foot }: { name: string; main: string; foot: ReactNode }) {
  return (
    <div className={css.tile}>
      <div className={css.tileName}>{name}</div>
      <div className={css.big}>{main}</div>
      <div className={css.tileFoot}>{foot}</div>
    </div>
  )
}

/** The shape of what is to come, so that little moves when it is there. */
function Waiting() {
  return (
    <div className={css.body} aria-busy>
      <div className={css.tiles}>
        {[0, 1, 2, 3].map((i) => (
          <div key={i} className={css.tile}>
            <Skeleton active title={{ width: '45%' }} paragraph={{ rows: 1, width: '70%' }} />
          </div>
        ))}
      </div>
      {[0, 1].map((i) => (
        <div key={i} className={css.card}>
          <Skeleton active title={{ width: '30%' }} paragraph={{ rows: 5 }} />
        </div>
      ))}
    </div>
  )
}
