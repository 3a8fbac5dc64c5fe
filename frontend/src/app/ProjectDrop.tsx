import { FolderOpen } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate, useOutletContext } from 'react-router'
import type { Folder } from '@/api/types.gen'
import type { Picked } from '@/features/files/picked'
import { UploadList } from '@/features/files/UploadList'
import { useUploads } from '@/features/files/useFiles'
import type { Dropped } from '@/features/folders/opening'
import css from './Shell.module.css'
import { type Drop, useProjectDrop } from './useProjectDrop'

interface Dropping {
  drop: Drop | null
  onTaken: () => void
}

/** The directory that was dropped, for the page that opens it as a project; null: none. */
export function useDropping(): { dropped: Dropped | null; onTaken: () => void } {
  const { drop, onTaken } = useOutletContext<Dropping>()
  const { items, uploads } = useUploads()
  if (!drop || 'path' in drop) return { dropped: drop, onTaken }
  // What is uploaded is what is in the directory: the folder takes its place.
  const picked: Picked[] = drop.picked
    .map((one) => ({ ...one, dirs: one.dirs.slice(1) }))
    .filter((one) => one.file || one.dirs.length > 0)
  const files = picked.flatMap((one) => one.file ?? [])
  const dropped = {
    name: drop.name,
    count: files.length,
    bytes: files.reduce((sum, file) => sum + file.size, 0),
    upload: (folder: Folder) => uploads.add({ folder: folder.id }, '', picked),
    stateOf: (folder: Folder) => {
      const states = items.filter((i) => 'folder' in i.place && i.place.folder === folder.id).map((i) => i.status)
      if (states.some((s) => s === 'sending' || s === 'waiting' || s === 'asking')) return 'sending' as const
      return states.every((s) => s === 'done') ? ('whole' as const) : ('partly' as const)
    },
    listOf: (folder: Folder) => <UploadList place={{ folder: folder.id }} />,
  }
  return { dropped, onTaken }
}

/** What the pages below the frame are given, and whether a directory is dragged over it. */
export function useDrops(): { dropping: Dropping; over: boolean } {
  const [drop, setDrop] = useState<Drop | null>(null)
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const take = useCallback(
    (next: Drop) => {
      setDrop(next)
      if (pathname !== '/folders') void navigate('/folders')
    },
    [navigate, pathname],
  )
  const over = useProjectDrop(take)
  const onTaken = useCallback(() => setDrop(null), [])
  return { dropping: { drop, onTaken }, over }
}

/** Says what becomes of a directory that is dragged over the page. */
export function DropOver() {
  const { t } = useTranslation('folders')
  return (
    <div className={css.drop} role="status">
      <FolderOpen size={28} strokeWidth={1.5} aria-hidden />
      {t('drop.title')}
      <span>{t('drop.text')}</span>
    </div>
  )
}
