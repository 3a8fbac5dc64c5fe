import { Button, Input, Tag, Tooltip } from 'antd'
import { FileCode, GitCompareArrows, History, Pencil, Pin, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useRecents } from '@/api/hooks'
import { MAX_RECENT_NAME } from '@/api/rules.gen'
import type { Recent } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { Dialog } from '@/ui/Dialog'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './history.module.css'
import { orderRecents, resourcesText } from './order'
import { useRecentChanges, type RecentChanges } from './useRecentChanges'

/** How many there are of something, in a badge that says of what. */
function Times({ count, text }: { count: number; text: string }) {
  return (
    <Tooltip title={text}>
      <Tag className={css.times} role="img" aria-label={text}>
        ×{count}
      </Tag>
    </Tooltip>
  )
}

interface RowProps {
  recent: Recent
  changes: RecentChanges
  onUse: (id: string) => void
}

function Row({ recent, changes, onUse }: RowProps) {
  const { t } = useTranslation('history')
  const [draft, setDraft] = useState<string | null>(null)
  const { name, pinned, spec } = recent
  const actions = useSessionActions()
  const save = () => {
    const text = draft?.trim() ?? ''
    if (text && text !== name) changes.update(recent.id, { name: text })
    setDraft(null)
  }
  const pin = t(pinned ? 'unpin' : 'pin', { name })
  return (
    <li className={css.row}>
      <Tooltip title={pin}>
        <Button
          type="text"
          size="small"
          aria-label={pin}
          aria-pressed={pinned}
          className={pinned ? (css.pinned ?? '') : ''}
          icon={<Pin size={14} />}
          onClick={() => changes.update(recent.id, { pinned: !pinned })}
        />
      </Tooltip>
      {draft === null ? (
        <button type="button" className={css.name} title={t('use', { name })} onClick={() => onUse(recent.id)}>
          {name}
        </button>
      ) : (
        <Input
          size="small"
          autoFocus
          maxLength={MAX_RECENT_NAME}
          aria-label={t('renameField')}
          value={draft}
          onChange={(e) => setDraft(e.target.value)}
          onBlur={save}
          onKeyDown={(e) => {
            if (e.key === 'Enter') save()
            if (e.key === 'Escape') {
              e.stopPropagation()
              setDraft(null)
            }
          }}
        />
      )}
      <span className={css.cell} title={spec.image}>
        {spec.image}
      </span>
      <span className={css.cell}>
        {resourcesText(spec)}
        {(spec.cluster ?? 1) > 1 ? (
          <Times count={spec.cluster ?? 1} text={t('kernels', { count: spec.cluster })} />
        ) : null}
        {recent.count > 1 ? <Times count={recent.count} text={t('sessions', { count: recent.count })} /> : null}
      </span>
      <span className={css.cell}>
        <RelativeTime at={recent.launchedAt} />
      </span>
      <span className={css.tools}>
        <Tooltip title={t('recipe', { name })}>
          <Button
            type="text"
            size="small"
            aria-label={t('recipe', { name })}
            icon={<FileCode size={13} />}
            onClick={() => actions.showRecipe({ kind: 'recent', id: recent.id })}
          />
        </Tooltip>
        <Tooltip title={t('rename', { name })}>
          <Button
            type="text"
            size="small"
            aria-label={t('rename', { name })}
            icon={<Pencil size={13} />}
            onClick={() => setDraft(name)}
          />
        </Tooltip>
        <Tooltip title={t('delete', { name })}>
          <Button
            type="text"
            size="small"
            aria-label={t('delete', { name })}
            icon={<Trash2 size={13} />}
            onClick={() => changes.forget(recent.id)}
          />
        </Tooltip>
      </span>
    </li>
  )
}

export interface RecentsModalProps {
  onClose: () => void
  /** Opens the launcher filled in with an entry. */
  onUse: (id: string) => void
  /** Opens a recipe's file. */
  open?: ReactNode
}

/** The launch history: use, pin, rename, forget. */
export function RecentsModal({ onClose, onUse, open }: RecentsModalProps) {
  const { t } = useTranslation('history')
  const recents = useRecents()
  const changes = useRecentChanges()
  const actions = useSessionActions()
  const ordered = orderRecents(recents.data ?? [])
  return (
    <Dialog
      width={860}
      footer={
        <div className={css.foot}>
          {open}
          <Button icon={<GitCompareArrows size={14} />} onClick={() => actions.compareRecipes(null)}>
            {t('compare')}
          </Button>
        </div>
      }
      title={t('title')}
      onCancel={onClose}
    >
      <p className={css.text}>{t('text')}</p>
      {recents.error && !recents.data ? (
        <ErrorState problem={asProblem(recents.error)} onRetry={() => void recents.refetch()} />
      ) : recents.data && ordered.length === 0 ? (
        <EmptyState icon={History} title={t('empty')} />
      ) : (
        <ul className={css.list} aria-busy={recents.isPending}>
          {ordered.map((recent) => (
            <Row key={recent.id} recent={recent} changes={changes} onUse={onUse} />
          ))}
        </ul>
      )}
    </Dialog>
  )
}
