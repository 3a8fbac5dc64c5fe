import { FolderOpen } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate } from 'react-router'
import css from './Shell.module.css'
import { type Drop, useProjectDrop } from './useProjectDrop'

export interface Dropping {
  drop: Drop | null
  onTaken: () => void
}

/** What the pages below the frame are given, and what takes a directory. */
export function useDrops(): { dropping: Dropping; take: (drop: Drop) => void } {
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
  const onTaken = useCallback(() => setDrop(null), [])
  return { dropping: { drop, onTaken }, take }
}

/** Takes what is dropped, and says what becomes of a directory that is dragged over the page. */
export function ProjectDrop({ onDrop }: { onDrop: (drop: Drop) => void }) {
  const { t } = useTranslation('folders')
  if (!useProjectDrop(onDrop)) return null
  return (
    <div className={css.drop} role="status">
      <FolderOpen size={28} strokeWidth={1.5} aria-hidden />
      {t('drop.title')}
      <span>{t('drop.text')}</span>
    </div>
  )
}
