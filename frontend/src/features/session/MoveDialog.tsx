import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Alert, Button, Input, Radio, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { useAgents, useOperations, useSession } from '@/api/hooks'
import { keys } from '@/api/keys'
import { SESSION_NAME } from '@/api/rules.gen'
import type { Operation, RelocationPlan, Session } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { formatBytes } from '@/lib/bytes'
import { nameFault } from '@/lib/names'
import { isRunning } from '@/lib/operation'
import { formatElapsed } from '@/lib/time'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import { WaitReason } from '@/ui/WaitReason'
import css from './CommitDialog.module.css'

/** Moves or copies a running session, or one that was stopped and kept. Closed meanwhile, that continues. */
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
  const agents = (useAgents().data ?? []).map(({ name }) => name)
  const others = agents.filter((name) => name !== session.agent)
  const alone = others.length === 0
  const [copies, setCopies] = useState(alone)
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const machines = copies ? agents : others
  const agent = machines.includes(chosen) ? chosen : ((others.length > 1 ? '' : others[0]) ?? session.agent)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const plan = useQuery({
    queryKey: keys.relocation(session.id, agent, copies),
    queryFn: ({ signal }) =>
      call('relocation-plan', { path: { id: session.id }, query: { agent, copy: copies ? '1' : undefined }, signal }),
    enabled: agent !== '',
    gcTime: 0,
    retry: false,
  })
  const fault = copies && name !== '' ? nameFault(SESSION_NAME, name) : ''
  const able = plan.data !== undefined && !plan.data.wait && fault === '' && !busy
  const go = async () => {
    if (!able) return
    setBusy(true)
    setProblem(null)
    try {
      const body = copies ? { agent, copy: true, name: name || (plan.data.name ?? '') } : { agent }
      const operation = await call('relocate', { path: { id: session.id }, body })
      applyOperation(client, operation)
      onBegun(operation.id)
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  return (
    <div className={css.form}>
      <Radio.Group
        className={css.choices ?? ''}
        value={copies}
        onChange={(event) => setCopies(Boolean(event.target.value))}
      >
        {alone ? null : <Choice value={false} title={t('session:move.moves')} text={t('session:move.movesText')} />}
        <Choice value={true} title={t('session:move.copies')} text={t('session:move.copiesText')} />
      </Radio.Group>
      <label className={css.field}>
        {t('session:move.to')}
        <Select
          autoFocus
          value={agent || null}
          options={machines.map((value) => ({ value, label: value }))}
          onChange={setChosen}
        />
      </label>
      {copies ? (
        <label className={css.field}>
          {t('session:move.name')}
          <Input
            value={name}
            placeholder={plan.data?.name ?? ''}
            status={fault ? 'error' : ''}
            maxLength={SESSION_NAME.max}
            spellCheck={false}
            onChange={(event) => setName(event.target.value)}
            onPressEnter={() => void go()}
          />
          {fault ? <span className={css.fault}>{fault}</span> : null}
        </label>
      ) : null}
      {plan.data ? <Plan plan={plan.data} /> : null}
      {plan.isLoading ? <p className={css.hint}>{t('session:move.looking')}</p> : null}
      {plan.error ? <ErrorState compact problem={asProblem(plan.error)} /> : null}
      {copies && agent === session.agent ? <p className={css.hint}>{t('session:move.sameFolders')}</p> : null}
      {session.status === 'RUNNING' ? (
        <p className={css.hint}>{t(copies ? 'session:move.notCopied' : 'session:move.memory')}</p>
      ) : null}
      {problem ? <ErrorState compact problem={problem} /> : null}
      <div className={css.foot}>
        <Button onClick={onClose}>{t('common:action.cancel')}</Button>
        <Button type="primary" disabled={!able} loading={busy} onClick={() => void go()}>
          {t(copies ? 'session:move.goCopy' : 'session:move.go')}
        </Button>
      </div>
    </div>
  )
}

function Choice({ value, title, text }: { value: boolean; title: string; text: string }) {
  return (
    <Radio value={value}>
      <b>{title}</b>
      <div className={css.hint}>{text}</div>
    </Radio>
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
      <li>{t(plan.more ? 'move.moreFiles' : plan.files > 0 ? 'move.files' : 'move.noFiles', sizes)}</li>
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
      {isRunning(operation) ? (
        <p className={css.hint}>
          {t(operation.kind === 'session-copy' ? 'session:move.copyGoesOn' : 'session:move.goesOn')}
        </p>
      ) : null}
      <div className={css.foot}>
        <Button type={operation.state === 'done' ? 'primary' : 'default'} onClick={onClose}>
          {t('common:action.close')}
        </Button>
      </div>
    </div>
  )
}
