import { useMutation, useQueries, useQueryClient } from '@tanstack/react-query'
import { Alert, Checkbox } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyAnswer, type SessionBook } from '@/api/book'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { keptHome } from '@/api/home'
import { useLacks } from '@/api/useLacks'
import { isParkable } from '@/api/parking'
import type { Loss, Session } from '@/api/types.gen'
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

/** How many names of files, or of sessions, one line has. */
const namesShown = 3
const failuresShown = 6

/** What becomes of the files in a session's home. */
function HomeLine({ loss, failed }: { loss: Loss | undefined; failed: boolean }) {
  const { t } = useTranslation('session')
  if (failed || loss?.unknown) return <div className={css.bad}>{t('terminate.homeUnknown')}</div>
  if (!loss) return <div className={css.dim}>{t('terminate.homeChecking')}</div>
  if (loss.count === 0) return null
  const names = loss.files.slice(0, namesShown).join(', ')
  return (
    <div className={css.bad}>
      {t('terminate.home', { count: loss.count, names: loss.count > namesShown ? `${names}, …` : names })}
    </div>
  )
}

interface LineProps {
  id: string
  session: Session | undefined
  loss: Loss | undefined
  failed: boolean
  /** Its home stays. */
  keeps: boolean
  /** All that are terminated: they are not named once more as cancelled. */
  ids: readonly string[]
}

function Line({ id, session, loss, failed, keeps, ids }: LineProps) {
  const { t } = useTranslation('session')
  const cancels = (loss?.cancels ?? []).filter((other) => !ids.includes(other.id)).map((other) => other.name)
  const named = cancels.slice(0, namesShown).join(', ')
  const place = [session?.owner, session?.agent].filter(Boolean).join(' · ')
  return (
    <li>
      <div className={css.line}>
        <b title={session?.name ?? id}>{session?.name ?? id}</b>
        <span className={css.dim} title={place}>
          {place}
        </span>
      </div>
      {session?.status === 'RUNNING' && !keeps ? <HomeLine loss={loss} failed={failed} /> : null}
      {cancels.length > 0 ? (
        <div className={css.bad}>
          {t('terminate.cancels', {
            count: cancels.length,
            names: cancels.length > namesShown ? `${named}, …` : named,
          })}
        </div>
      ) : null}
    </li>
  )
}

/**
 * Asks before sessions end, with each by its name and what ends with it. One that cannot be ended does not keep the
 * others from it.
 */
export function TerminateDialog({ ids, forced, onClose }: TerminateDialogProps) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const [force, setForce] = useState(forced ?? false)
  const [park, setPark] = useState(false)
  const [failures, setFailures] = useState<Failure[]>([])
  const [left, setLeft] = useState(ids)
  const book = client.getQueryData<SessionBook>(keys.sessions)
  const nameOf = (id: string) => book?.[id]?.name ?? id
  const losses = useQueries({
    queries: left.map((id) => ({
      queryKey: keys.loss(id),
      queryFn: ({ signal }: { signal: AbortSignal }) => call('loss', { path: { id }, signal }),
      gcTime: 0,
      retry: false,
    })),
  })

  const end = useMutation({
    mutationFn: async () => {
      const failed: Failure[] = []
      await Promise.all(
        left.map(async (id) => {
          try {
            const path = { id }
            const body = force ? { forced: true } : { undo: true }
            applyAnswer(client, await (park ? call('park', { path }) : call('terminate', { path, body })))
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
  const lacks = useLacks()
  const parkable = left.every((id) => {
    const one = book?.[id]
    return one && isParkable(one) && lacks(one.agent, 'commit') === ''
  })
  const committed = left.some((id) => book?.[id]?.startedAt && (book[id].spec.commitOnEnd ?? 0) > 0)
  const homes = left.map((id) => book?.[id] && keptHome(book[id]))
  const lost = homes.filter((home) => !home).length
  const fate = lost === left.length ? 'text' : lost === 0 ? 'kept' : 'mixed'
  return (
    <Dialog
      width={500}
      title={
        left.length === 1
          ? t(`session:terminate.${park ? 'parkOne' : 'titleOne'}`, { name: nameOf(left[0] ?? '') })
          : t(`session:terminate.${park ? 'parkMany' : 'titleMany'}`, { count: left.length })
      }
      okText={t(`session:terminate.${park ? 'okPark' : force ? 'okForce' : 'ok'}`)}
      okButtonProps={{ danger: !park, type: 'primary' }}
      cancelText={t('common:action.cancel')}
      confirmLoading={end.isPending}
      onOk={() => end.mutate()}
      onCancel={onClose}
    >
      <p className={css.text}>
        {park
          ? t('session:terminate.park', { count: left.length })
          : left.length === 1
            ? t(`session:terminate.${fate === 'text' ? 'text' : 'kept'}`, { folder: homes[0]?.name })
            : t(`session:terminate.${fate}Many`, { count: lost })}
      </p>
      {/* It scrolls, so it must be reached by the keyboard. */}
      <ul className={css.names} tabIndex={0} aria-label={t('session:terminate.list')}>
        {left.map((id, i) => (
          <Line
            key={id}
            id={id}
            session={book?.[id]}
            loss={losses[i]?.data}
            failed={losses[i]?.isError ?? false}
            keeps={park}
            ids={left}
          />
        ))}
      </ul>
      {committed && !park ? (
        <p className={css.text}>{t(force ? 'session:terminate.noImage' : 'session:terminate.image')}</p>
      ) : null}
      {park ? null : <p className={css.text}>{t(force ? 'session:terminate.noUndo' : 'session:terminate.undo')}</p>}
      <div className={css.choices}>
        {parkable ? (
          <Checkbox checked={park} disabled={force} onChange={(e) => setPark(e.target.checked)}>
            {t('session:terminate.keep')}
          </Checkbox>
        ) : null}
        <Checkbox checked={force} disabled={park} onChange={(e) => setForce(e.target.checked)}>
          {t('session:terminate.force')}
        </Checkbox>
      </div>
      {force ? (
        <Alert className={css.alert ?? ''} type="warning" showIcon title={t('session:terminate.forceText')} />
      ) : null}
      {failures.length > 0 ? (
        <Alert
          className={css.alert ?? ''}
          type="error"
          showIcon
          title={t('session:terminate.failed', { count: failures.length })}
          description={failures.slice(0, failuresShown).map((f) => (
            <div key={f.id}>
              {nameOf(f.id)}: {f.message} {f.hint}
            </div>
          ))}
        />
      ) : null}
    </Dialog>
  )
}
