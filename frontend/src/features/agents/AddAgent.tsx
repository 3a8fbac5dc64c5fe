import { useQueryClient } from '@tanstack/react-query'
import { AutoComplete, Button, Drawer, Input } from 'antd'
import { Plus, ScanSearch } from 'lucide-react'
import { useId, useState, type FormEvent, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, type ApiProblem, call } from '@/api/client'
import { applyOperation } from '@/api/book'
import { useOperations } from '@/api/hooks'
import { useOperationActions } from '@/api/useOperation'
import type { AgentRequest } from '@/api/types.gen'
import { isRunning } from '@/lib/operation'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import css from './agents.module.css'
import { addressFault } from './join'

const examples = [
  'ssh://ada@lab.example.com',
  'slurm://ada@login.example.com',
  'slipway://lab.example.com:7442',
  'wss://lab.example.com/slipway',
] as const

interface AddAgentProps {
  groups: readonly string[]
  onClose: () => void
  /** Shows the agent that was added. */
  onShow: (name: string) => void
}

function Labelled({
  label,
  hint,
  fault,
  children,
}: {
  label: string
  hint?: string
  fault?: string | undefined
  children: (id: string) => ReactNode
}) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {fault ? (
        <div className={css.fault} role="alert">
          {fault}
        </div>
      ) : hint ? (
        <div className={css.hint}>{hint}</div>
      ) : null}
    </div>
  )
}

/** Adds an agent: what it is called and where it is, then its steps as they happen, with what they ask. */
export function AddAgent({ groups, onClose, onShow }: AddAgentProps) {
  const { t } = useTranslation(['agents', 'common'])
  const client = useQueryClient()
  const formId = useId()
  const [form, setForm] = useState({ address: '', name: '', group: '' })
  const [tried, setTried] = useState(false)
  const [sending, setSending] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const [id, setId] = useState('')
  const operation = useOperations().data?.find((o) => o.id === id)
  const actions = useOperationActions(id)
  const fault = addressFault(form.address)
  const running = operation !== undefined && isRunning(operation)
  const set = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }))

  const begin = async (probe: boolean) => {
    setTried(true)
    if (fault || running || sending) return
    const body: AgentRequest = { address: form.address.trim() }
    if (form.name.trim()) body.name = form.name.trim()
    if (form.group.trim()) body.group = form.group.trim()
    if (probe) body.probe = true
    setSending(true)
    setProblem(null)
    try {
      const started = await call('agent-add', { body })
      applyOperation(client, started)
      setId(started.id)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setSending(false)
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void begin(false)
  }
  const added = operation?.state === 'done' && operation.kind === 'agent-add' ? operation.agent : undefined
  return (
    <Drawer open size={560} title={t('agents:add.title')} onClose={onClose} maskClosable={!running}>
      <div className={css.form}>
        <form id={formId} className={css.form} onSubmit={submit}>
          <Labelled
            label={t('agents:add.address')}
            hint={t('agents:add.addressHint')}
            fault={tried && fault ? t(`agents:add.fault.${fault}`) : undefined}
          >
            {(control) => (
              <Input
                id={control}
                autoFocus
                spellCheck={false}
                disabled={running || added !== undefined}
                value={form.address}
                status={tried && fault ? 'error' : ''}
                className={css.mono ?? ''}
                placeholder="ssh://user@host"
                onChange={(e) => set({ address: e.target.value })}
              />
            )}
          </Labelled>
          <div className={css.two}>
            <Labelled label={t('agents:add.name')} hint={t('agents:add.nameHint')}>
              {(control) => (
                <Input
                  id={control}
                  disabled={running || added !== undefined}
                  value={form.name}
                  maxLength={64}
                  onChange={(e) => set({ name: e.target.value })}
                />
              )}
            </Labelled>
            <Labelled label={t('agents:add.group')} hint={t('agents:add.groupHint')}>
              {(control) => (
                <AutoComplete
                  id={control}
                  disabled={running || added !== undefined}
                  value={form.group}
                  placeholder="default"
                  options={groups.map((value) => ({ value }))}
                  onChange={(group: string) => set({ group })}
                />
              )}
            </Labelled>
          </div>
        </form>
        {problem ? <ErrorState compact problem={problem} /> : null}
        {operation ? (
          <OperationView follow operation={operation} {...actions} />
        ) : (
          <Examples onPick={(address) => set({ address })} />
        )}
        <div className={css.buttons}>
          {added ? (
            <Button type="primary" onClick={() => onShow(added)}>
              {t('agents:add.show', { name: added })}
            </Button>
          ) : running ? null : (
            <>
              <Button type="primary" htmlType="submit" form={formId} icon={<Plus size={15} />} loading={sending}>
                {t('agents:add.go')}
              </Button>
              <Button icon={<ScanSearch size={15} />} disabled={sending} onClick={() => void begin(true)}>
                {t('agents:add.probe')}
              </Button>
            </>
          )}
        </div>
      </div>
    </Drawer>
  )
}

/** What an address looks like; one that is clicked is the beginning of what is typed. */
function Examples({ onPick }: { onPick: (address: string) => void }) {
  const { t } = useTranslation('agents')
  return (
    <>
      <ul className={css.examples}>
        {examples.map((value) => (
          <li key={value}>
            <button type="button" className={css.example} onClick={() => onPick(value)}>
              <code>{value}</code>
              <span>{t(`add.scheme.${value.slice(0, value.indexOf(':')) as 'ssh'}`)}</span>
            </button>
          </li>
        ))}
      </ul>
      <p className={css.explain}>{t('add.explain')}</p>
    </>
  )
}
