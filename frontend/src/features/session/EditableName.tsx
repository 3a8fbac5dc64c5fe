import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button, Input, Tooltip } from 'antd'
import { Pencil } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyAnswer } from '@/api/book'
import { asProblem, call } from '@/api/client'
import { SESSION_NAME } from '@/api/rules.gen'
import type { Session } from '@/api/types.gen'
import { nameFault } from '@/lib/names'
import { hintText, messageText } from '@/lib/phrases'
import { isLive } from '@/lib/status'
import css from './SessionDrawer.module.css'

/** The name as a heading; the pencil turns it into a field. Enter saves, Escape leaves it as it was. */
export function EditableName({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const client = useQueryClient()
  const [draft, setDraft] = useState<string | null>(null)
  const rename = useMutation({
    mutationFn: (name: string) => call('session-update', { path: { id: session.id }, body: { name } }),
    onSuccess: (renamed) => {
      applyAnswer(client, renamed)
      setDraft(null)
    },
  })
  if (draft === null) {
    return (
      <div className={css.nameRow}>
        <h2 className={css.name} title={session.name}>
          {session.name}
        </h2>
        {isLive(session.status) ? (
          <Tooltip title={t('rename.label')}>
            <Button
              type="text"
              size="small"
              aria-label={t('rename.label')}
              icon={<Pencil size={13} />}
              onClick={() => setDraft(session.name)}
            />
          </Tooltip>
        ) : null}
      </div>
    )
  }
  const fault = nameFault(SESSION_NAME, draft)
  const failure = rename.error ? asProblem(rename.error) : undefined
  const message = fault || (failure ? [messageText(failure), hintText(failure)].filter(Boolean).join(' ') : '')
  const leave = () => {
    rename.reset()
    setDraft(null)
  }
  const save = () => {
    if (fault) return
    if (draft === session.name) leave()
    else rename.mutate(draft)
  }
  return (
    <div>
      <Input
        autoFocus
        aria-label={t('rename.field')}
        aria-invalid={Boolean(message)}
        className={css.nameField ?? ''}
        status={message ? 'error' : ''}
        maxLength={80}
        value={draft}
        disabled={rename.isPending}
        onFocus={(e) => e.target.select()}
        onChange={(e) => {
          rename.reset()
          setDraft(e.target.value)
        }}
        onKeyDown={(e) => {
          if (e.key === 'Enter') save()
          if (e.key === 'Escape') {
            e.stopPropagation()
            leave()
          }
        }}
        onBlur={() => (fault || failure ? undefined : save())}
      />
      {message ? (
        <div className={css.nameIssue} role="alert">
          {message}
        </div>
      ) : null}
    </div>
  )
}
