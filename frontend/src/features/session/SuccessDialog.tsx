import { useQuery } from '@tanstack/react-query'
import { Skeleton } from 'antd'
import { GitCompareArrows } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { asProblem, call } from '@/api/client'
import type { Run, Session, SuccessComparison } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { digits, formatShare } from '@/lib/share'
import { formatElapsed } from '@/lib/time'
import { Dialog } from '@/ui/Dialog'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './Failure.module.css'
import { inOrder, useGrantName } from './Kernels'

/** Enough of a digest to tell two apart: "sha256:" and 12 digits, as Docker shows them. */
const shownDigest = 19

/** What differs between a session and the last one like it that succeeded. */
export function SuccessDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation('session')
  const query = useQuery({
    queryKey: ['last-success', session.id],
    queryFn: ({ signal }) => call('last-success', { path: { id: session.id }, signal }),
  })
  return (
    <Dialog width={860} footer={null} title={t('failure.compare')} onCancel={onClose}>
      {query.error ? (
        <ErrorState compact problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : !query.data ? (
        <Skeleton active paragraph={{ rows: 8 }} />
      ) : query.data.success ? (
        <Rows comparison={query.data} success={query.data.success} />
      ) : (
        <EmptyState icon={GitCompareArrows} title={t('failure.noSuccess')} text={t('failure.noSuccessText')} />
      )}
    </Dialog>
  )
}

type Row = readonly [name: string, left: string, right: string]

function Rows({ comparison, success }: { comparison: SuccessComparison; success: Run }) {
  const { t } = useTranslation('session')
  const left = useFacts(comparison.this)
  const right = useFacts(success)
  const facts = left.map(([name, value], i): Row => [name, value, right[i]?.[1] ?? ''])
  const settings = comparison.spec.filter((f) => !f.same).map((f): Row => [f.field, f.left, f.right])
  const cell = (text: string) => (text === '' ? <span className={css.none}>–</span> : text)
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={t('failure.compare')}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{t('failure.field')}</th>
            <Head title={t('failure.this')} run={comparison.this} />
            <Head title={t('failure.success')} run={success} />
          </tr>
        </thead>
        <tbody>
          {[...facts, ...settings].map(([name, a, b]) => (
            <tr key={name} className={a === b ? undefined : css.differs}>
              <th scope="row">
                {name}
                {a === b ? null : <span className="unseen"> {t('failure.differs')}</span>}
              </th>
              <td>{cell(a)}</td>
              <td>{cell(b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Head({ title, run: { session } }: { title: string; run: Run }) {
  return (
    <th scope="col">
      {title}
      <Link className={css.name} to={`/sessions/${session.id}`} title={session.name}>
        {session.name}
      </Link>
      <RelativeTime at={session.createdAt} />
    </th>
  )
}

/** What a session had and used, by name. */
function useFacts({ session, busyCpus, memoryPeak, vramPeak }: Run): [name: string, value: string][] {
  const { t } = useTranslation(['session', 'common'])
  const nameOf = useGrantName(session.agent)
  const { cpus, memory, gpus } = session.grants
  const { startedAt, terminatedAt, exitCode } = session
  const result = session.result === 'undefined' ? '' : t(`common:result.${session.result}`)
  const exit = exitCode === null ? '' : t('session:kernel.exited', { code: exitCode })
  return [
    [t('session:fact.agent'), session.agent],
    [t('session:failure.digest'), session.pinned?.split('@')[1]?.slice(0, shownDigest) ?? ''],
    [t('session:failure.cpus'), cpus.length > 0 ? String(cpus.length) : ''],
    [t('session:failure.memory'), memory > 0 ? formatBytes(memory) : ''],
    [
      t('session:failure.gpus'),
      inOrder(gpus, nameOf)
        .map((g) => `${nameOf(g)} × ${formatShare(g.share)}`)
        .join('\n'),
    ],
    [t('session:fact.result'), [result, exit].filter(Boolean).join(' · ')],
    [
      t('session:failure.duration'),
      startedAt && terminatedAt ? formatElapsed(Date.parse(terminatedAt) - Date.parse(startedAt)) : '',
    ],
    [t('session:failure.cpuUse'), busyCpus ? digits(busyCpus) : ''],
    [t('session:failure.memoryPeak'), memoryPeak ? formatBytes(memoryPeak) : ''],
    [t('session:failure.vramPeak'), vramPeak ? formatBytes(vramPeak) : ''],
  ]
}
