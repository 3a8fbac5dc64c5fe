import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import css from './files.module.css'
import { crumbsOf } from './paths'
import type { Moves } from './useMoves'

interface CrumbsProps {
  /** What the root is called. */
  root: string
  dir: string
  onVisit: (dir: string) => void
  moves: Moves
}

/** The way to a directory. What is dragged can be dropped on each step of it. */
export function Crumbs({ root, dir, onVisit, moves }: CrumbsProps) {
  const { t } = useTranslation('files')
  const [over, setOver] = useState<string | null>(null)
  return (
    <nav className={css.crumbs} aria-label={t('path')}>
      {[{ name: root, path: '' }, ...crumbsOf(dir)].map((crumb, i, all) => (
        <span key={crumb.path}>
          {i > 0 ? <i aria-hidden>/</i> : null}
          <button
            type="button"
            className={moves.dragging && over === crumb.path ? css.target : undefined}
            aria-current={i === all.length - 1 ? 'page' : undefined}
            onClick={() => onVisit(crumb.path)}
            onDragOver={() => setOver(moves.dragging && moves.able(crumb.path) ? crumb.path : null)}
            onDragLeave={() => setOver(null)}
            onDrop={() => {
              setOver(null)
              if (moves.dragging && moves.able(crumb.path)) void moves.put(crumb.path)
            }}
          >
            {crumb.name}
          </button>
        </span>
      ))}
    </nav>
  )
}
