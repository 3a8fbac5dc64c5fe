import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Alert, Checkbox } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyAnswer, type SessionBook } from '@/api/book'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { keptHome } from '@/api/home'
import { Dialog } from '@/ui/Dialog'
import css from './TerminateDialog.module.css'

export interface TerminateDialogProps {
  ids: string[]
  /** Begin with force ticked. */
  forced?: boolean
  onClose: () => void
}

interface Failure {
  id: string
  message: string
  hint: string
}

const namesShown = 6

/** Asks before sessions end. One that cannot be ended does not keep the others from it. */
export function TerminateDialog({ ids, forced, onClose }: TerminateDialogProps) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const [force, setForce] = useState(forced ?? false)
  const [failures, setFailures] = useState<Failure[]>([])
  const [left, setLeft] = useState(ids)
  const book = client.getQueryData<SessionBook>(keys.sessions)
  const nameOf = (id: string) => book?.[id]?.name ?? id

  const end = useMutation({
    mutationFn: async () => {
      const failed: Failure[] = []
      await Promise.all(
        left.map(async (id) => {
          try {
            applyAnswer(client, await call('terminate', { path: { id }, body: { forced: force } }))
          } catch (error) {
            const problem = asProblem(error)
            failed.push({ id, message: problem.message, hint: problem.hint })
          }
        }),
      )
      return failed
    },
    onSuccess: (failed) => {
      if (failed.length === 0) return onClose()
      setFailures(failed)
      setLeft(failed.map((f) => f.id))
    },
  })
  const committed = left.some((id) => book?.[id]?.startedAt && (book[id].spec.commitOnEnd ?? 0) > 0)
  const homes = left.map((id) => book?.[id] && keptHome(book[id]))
  const lost = homes.filter((home) => !home).length
  const fate = lost === left.length ? 'text' : lost === 0 ? 'kept' : 'mixed'
  const names = left.slice(0, namesShown).map(nameOf)
  return (
    <Dialog
      width={460}
      title={
        left.length === 1
          ? t('session:terminate.titleOne', { name: names[0] })
          : t('session:terminate.titleMany', { count: left.length })
      }
      okText={t(force ? 'session:terminate.okForce' : 'session:terminate.ok')}
      okButtonProps={{ danger: true, type: 'primary' }}
      cancelText={t('common:action.cancel')}
      confirmLoading={end.isPending}
      onOk={() => end.mutate()}
      onCancel={onClose}
    >
      <p className={css.text}>
        {left.length === 1
          ? t(`session:terminate.${fate === 'text' ? 'text' : 'kept'}`, { folder: homes[0]?.name })
          : t(`session:terminate.${fate}Many`, { count: lost })}
      </p>
      {left.length > 1 ? (
        <ul className={css.names}>
          {names.map((name) => (
            <li key={name}>{name}</li>
          ))}
          {left.length > namesShown ? (
            <li className={css.more}>{t('session:terminate.more', { count: left.length - namesShown })}</li>
          ) : null}
        </ul>
      ) : null}
      {committed ? (
        <p className={css.text}>{t(force ? 'session:terminate.noImage' : 'session:terminate.image')}</p>
      ) : null}
      <Checkbox checked={force} onChange={(e) => setForce(e.target.checked)}>
        {t('session:terminate.force')}
      </Checkbox>
      {force ? (
        <Alert className={css.alert ?? ''} type="warning" showIcon title={t('session:terminate.forceText')} />
      ) : null}
      {failures.length > 0 ? (
        <Alert
          className={css.alert ?? ''}
          type="error"
          showIcon
          title={t('session:terminate.failed', { count: failures.length })}
          description={failures.slice(0, namesShown).map((f) => (
            <div key={f.id}>
              {nameOf(f.id)}: {f.message} {f.hint}
            </div>
          ))}
        />
      ) : null}
    </Dialog>
  )
}
