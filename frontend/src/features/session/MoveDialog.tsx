import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Alert, Button, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { useAgents, useOperations, useSession } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Operation, RelocationPlan, Session } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { formatBytes } from '@/lib/bytes'
import { isRunning } from '@/lib/operation'
import { formatElapsed } from '@/lib/time'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import { WaitReason } from '@/ui/WaitReason'
import css from './CommitDialog.module.css'

/** Moves a running session, or one that was stopped and kept. Closed meanwhile, the move goes on. */
export function MoveDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const { session } = useSession(id)
  const [begun, setBegun] = useState<string | null>(null)
  const operation = useOperations().data?.find((o) => o.id === begun)
  return (
    <Dialog width={560} title={t('session:move.title', { name: session?.name ?? id })} footer={null} onCancel={onClose}>
      {operation ? (
        <Progress operation={operation} onClose={onClose} />
      ) : session ? (
        <Form session={session} onBegun={setBegun} onClose={onClose} />
      ) : null}
    </Dialog>
  )
}

function Form({ session, onBegun, onClose }: { session: Session; onBegun: (id: string) => void; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const others = (useAgents().data ?? []).filter((a) => a.name !== session.agent)
  const [chosen, setChosen] = useState('')
  const agent = chosen || (others.length === 1 ? (others[0]?.name ?? '') : '')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const plan = useQuery({
    queryKey: keys.relocation(session.id, agent),
    queryFn: ({ signal }) => call('relocation-plan', { path: { id: session.id }, query: { agent }, signal }),
    enabled: agent !== '',
    gcTime: 0,
    retry: false,
  })
  const able = plan.data !== undefined && !plan.data.wait && !busy
  const go = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const operation = await call('relocate', { path: { id: session.id }, body: { agent } })
      applyOperation(client, operation)
      onBegun(operation.id)
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  return (
    <div className={css.form}>
      <p className={css.text}>{t('session:move.text')}</p>
      <label className={css.field}>
        {t('session:move.to')}
        <Select
          autoFocus
          value={agent || null}
          options={others.map(({ name }) => ({ value: name, label: name }))}
          onChange={setChosen}
        />
      </label>
      {plan.data ? <Plan plan={plan.data} /> : null}
      {plan.isLoading ? <p className={css.hint}>{t('session:move.looking')}</p> : null}
      {plan.error ? <ErrorState compact problem={asProblem(plan.error)} /> : null}
      {session.status === 'RUNNING' ? <p className={css.hint}>{t('session:move.memory')}</p> : null}
      {problem ? <ErrorState compact problem={problem} /> : null}
      <div className={css.foot}>
        <Button onClick={onClose}>{t('common:action.cancel')}</Button>
        <Button type="primary" disabled={!able} loading={busy} onClick={() => void go()}>
          {t('session:move.go')}
        </Button>
      </div>
    </div>
  )
}

/** What would be sent, or what the session would wait for. */
function Plan({ plan }: { plan: RelocationPlan }) {
  const { t } = useTranslation('session')
  const sizes = { count: plan.files, bytes: formatBytes(plan.bytes) }
  return plan.wait ? (
    <Alert
      type="warning"
      showIcon
      title={t('move.full', { agent: plan.agent })}
      description={<WaitReason wait={plan.wait} machine={plan.agent} />}
    />
  ) : (
    <ul className={css.paths}>
      {plan.home ? <li>{t('move.home', { folder: plan.home, agent: plan.agent })}</li> : null}
      <li>{plan.more ? t('move.moreFiles', sizes) : t('move.files', sizes)}</li>
      {plan.seconds === undefined ? null : (
        <li>{t('move.time', { time: formatElapsed(Math.max(plan.seconds, 1) * 1000) })}</li>
      )}
      <li>{plan.image > 0 ? t('move.image', { bytes: formatBytes(plan.image) }) : t('move.noImage')}</li>
    </ul>
  )
}

function Progress({ operation, onClose }: { operation: Operation; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useOperationActions(operation.id)
  return (
    <div className={css.form}>
      <OperationView operation={operation} follow {...actions} />
      {isRunning(operation) ? <p className={css.hint}>{t('session:move.goesOn')}</p> : null}
      <div className={css.foot}>
        <Button type={operation.state === 'done' ? 'primary' : 'default'} onClick={onClose}>
          {t('common:action.close')}
        </Button>
      </div>
    </div>
  )
}
