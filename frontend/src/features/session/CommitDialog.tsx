import { useQueryClient } from '@tanstack/react-query'
import { Alert, Button, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { useOperations, useSession } from '@/api/hooks'
import { COMMIT_NAME } from '@/api/rules.gen'
import type { Operation, Session } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { launchAddress } from '@/lib/image'
import { isRunning } from '@/lib/operation'
import { isLive } from '@/lib/status'
import { CopyButton } from '@/ui/CopyButton'
import { nameFault } from '@/lib/names'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import css from './CommitDialog.module.css'
import { commitNameOf } from './commitName'

/** Where what is not copied lies: the home, and whatever is mounted. */
function leftOut(session: Session): string[] {
  const targets = [
    ...(session.folders ?? []).map((f) => f.target),
    ...(session.spec.mounts ?? []).map((m) => m.target ?? ''),
  ]
  return ['/home/work', ...new Set(targets.filter(Boolean))]
}

/** Asks for a name and makes an image of a session. Closed while it is made, the work goes on. */
export function CommitDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const { session } = useSession(id)
  const [begun, setBegun] = useState<string | null>(null)
  const operation = useOperations().data?.find((o) => o.id === begun)
  return (
    <Dialog
      width={520}
      title={t('session:commit.title', { name: session?.name ?? id })}
      footer={null}
      onCancel={onClose}
    >
      {operation ? (
        <Progress operation={operation} onAgain={() => setBegun(null)} onClose={onClose} />
      ) : session ? (
        <Form session={session} onBegun={setBegun} onClose={onClose} />
      ) : null}
    </Dialog>
  )
}

function Form({ session, onBegun, onClose }: { session: Session; onBegun: (id: string) => void; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const [name, setName] = useState(() => (session.endImage?.kept ? session.endImage.name : commitNameOf(session.name)))
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const fault = nameFault(COMMIT_NAME, name)
  const wrong = name !== '' && fault !== ''
  const able = fault === '' && !busy
  const go = async () => {
    if (!able) return
    setBusy(true)
    setProblem(null)
    try {
      const operation = await call('commit', { path: { id: session.id }, body: { name } })
      applyOperation(client, operation)
      onBegun(operation.id)
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  return (
    <div className={css.form}>
      <p className={css.text}>{t('session:commit.text', { image: session.spec.image })}</p>
      <label className={css.field}>
        {t('session:commit.name')}
        <Input
          autoFocus
          value={name}
          status={wrong ? 'error' : ''}
          maxLength={64}
          spellCheck={false}
          onChange={(event) => setName(event.target.value)}
          onPressEnter={() => void go()}
        />
        <span className={wrong ? css.fault : css.hint}>{wrong ? fault : t('session:commit.nameHint')}</span>
      </label>
      <Alert
        type="warning"
        showIcon
        title={t('session:commit.leftOut')}
        description={
          <ul className={css.paths}>
            {leftOut(session).map((path) => (
              <li key={path}>
                <code>{path}</code>
              </li>
            ))}
          </ul>
        }
      />
      {isLive(session.status) ? <p className={css.hint}>{t('session:commit.paused')}</p> : null}
      {problem ? <ErrorState compact problem={problem} /> : null}
      <div className={css.foot}>
        <Button onClick={onClose}>{t('common:action.cancel')}</Button>
        <Button type="primary" disabled={!able} loading={busy} onClick={() => void go()}>
          {t('session:commit.go')}
        </Button>
      </div>
    </div>
  )
}

function Progress({ operation, onAgain, onClose }: { operation: Operation; onAgain: () => void; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useOperationActions(operation.id)
  const done = operation.state === 'done' && operation.image
  return (
    <div className={css.form}>
      <OperationView operation={operation} {...actions} />
      {done ? (
        <div className={css.made}>
          <code>{operation.image}</code>
          <CopyButton text={operation.image ?? ''} label={t('session:commit.copy')} />
        </div>
      ) : null}
      {isRunning(operation) ? <p className={css.hint}>{t('session:commit.goesOn')}</p> : null}
      <div className={css.foot}>
        {done ? (
          <Link to={launchAddress(operation.image ?? '')} onClick={onClose}>
            {t('session:commit.launch')}
          </Link>
        ) : null}
        {operation.state === 'failed' || operation.state === 'cancelled' ? (
          <Button onClick={onAgain}>{t('common:action.retry')}</Button>
        ) : null}
        <Button type={done ? 'primary' : 'default'} onClick={onClose}>
          {t('common:action.close')}
        </Button>
      </div>
    </div>
  )
}
