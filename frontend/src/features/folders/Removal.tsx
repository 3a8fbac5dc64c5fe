import { useTranslation } from 'react-i18next'
import type { Folder, FolderRemoval } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { formatPercent } from '@/lib/share'
import { Mark } from './Mark'

/**
 * How much of a folder is deleted, in percent: by its files, which are many where it takes long, and else by their
 * bytes.
 */
function percentOf({ files, ofFiles, bytes, ofBytes }: FolderRemoval): number | undefined {
  const shares = [
    [files, ofFiles],
    [bytes, ofBytes],
  ].flatMap(([done = 0, all = 0]) => (all > 0 ? [done / all] : []))
  return shares.length > 0 ? Math.min(100, Math.round(Math.min(...shares) * 100)) : undefined
}

/** Says that a folder is being deleted and how far that is, or that it was cancelled halfway. */
export function Removal({ folder: { state, problem, removed } }: { folder: Folder }) {
  const { t } = useTranslation('folders')
  if (state !== 'deleting' && !removed) return null
  const amount = !removed
    ? undefined
    : removed.ofFiles > 0
      ? t('removedOf', {
          done: removed.files,
          all: Math.max(removed.ofFiles, removed.files),
          bytes: formatBytes(removed.bytes),
        })
      : t('removed', { count: removed.files, bytes: formatBytes(removed.bytes) })
  if (state !== 'deleting') return <Mark bad text={t('partly')} title={t('partlyText', { removed: amount })} />
  const percent = removed ? percentOf(removed) : undefined
  const title = problem ?? amount
  return (
    <Mark
      bad={Boolean(problem)}
      text={percent === undefined ? t('deleting') : t('deletingPercent', { percent: formatPercent(percent) })}
      {...(title ? { title } : {})}
    />
  )
}
