import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button, Select, Tooltip } from 'antd'
import { Tag, Tags } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyAnswer } from '@/api/book'

import { asProblem, call } from '@/api/client'
import { useSessionBook } from '@/api/hooks'
import { MAX_TAGS } from '@/api/rules.gen'
import type { Session } from '@/api/types.gen'
import css from './SessionDrawer.module.css'

/** A person's own marks of a session, live or finished. Escape leaves them as they were. */
export function EditableTags({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const book = useSessionBook().data
  const [draft, setDraft] = useState<string[] | null>(null)
  const save = useMutation({
    mutationFn: (tags: string[]) => call('session-update', { path: { id: session.id }, body: { tags } }),
    onSuccess: (changed) => {
      applyAnswer(client, changed)
      setDraft(null)
    },
  })
  if (draft === null) {
    const label = t(session.tags.length > 0 ? 'session:tags.edit' : 'session:tags.add')
    return (
      <div className={css.tags}>
        {session.tags.map((tag) => (
          <span key={tag} className={css.tag}>
            <Tag size={11} aria-hidden />
            {tag}
          </span>
        ))}
        <Tooltip title={label}>
          <Button
            type="text"
            size="small"
            aria-label={label}
            disabled={Boolean(session.lastHeard)}
            icon={<Tags size={13} />}
            onClick={() => setDraft(session.tags)}
          />
        </Tooltip>
      </div>
    )
  }
  const leave = () => {
    save.reset()
    setDraft(null)
  }
  const known = [...new Set(Object.values(book ?? {}).flatMap((s) => s.tags))].sort()
  const failure = save.error ? asProblem(save.error) : null
  return (
    <div className={css.tagging}>
      <div className={css.tags}>
        <Select
          mode="tags"
          notFoundContent={null}
          size="small"
          autoFocus
          className={css.tagField ?? ''}
          aria-label={t('session:tags.field')}
          status={failure ? 'error' : ''}
          tokenSeparators={[',']}
          maxCount={MAX_TAGS}
          value={draft}
          onChange={setDraft}
          options={known.map((value) => ({ value }))}
          onInputKeyDown={(event) => {
            if (event.key !== 'Escape') return
            event.stopPropagation()
            leave()
          }}
        />
        <Button size="small" type="primary" loading={save.isPending} onClick={() => save.mutate(draft)}>
          {t('common:action.save')}
        </Button>
        <Button size="small" onClick={leave}>
          {t('common:action.cancel')}
        </Button>
      </div>
      {failure ? (
        <div className={css.nameIssue} role="alert">
          {failure.message} {failure.hint}
        </div>
      ) : null}
    </div>
  )
}
