import { AutoComplete, Checkbox, InputNumber, Select } from 'antd'
import { useId, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, type ApiProblem, call } from '@/api/client'
import type { PersonLimit } from '@/api/types.gen'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './agents.module.css'

const GIB = 1024 ** 3

/** Stands for everybody who has no limits of their own. */
export const EVERYBODY = 'default'

interface LimitDialogProps {
  agent: string
  /** Whose limits are changed; empty: one is chosen here. */
  owner: string
  limit: PersonLimit
  /** Who may be meant, to choose from. */
  people: readonly string[]
  /** Who has limits already. */
  taken: readonly string[]
  onClose: () => void
  onSaved: () => Promise<void>
}

function Row({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  )
}

/** Asks what one person may hold at a time; what is left empty is not limited. */
export function LimitDialog({ agent, owner, limit, people, taken, onClose, onSaved }: LimitDialogProps) {
  const { t } = useTranslation(['agents', 'common'])
  const [form, setForm] = useState({ owner, ...limit })
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const set = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }))
  const person = form.owner.trim()
  const doubled = owner === '' && taken.includes(person)
  const save = async () => {
    const { sessions, cpu, memory, gpu, processes, folders, logins } = form
    setBusy(true)
    setProblem(null)
    try {
      await call('agent-limit-set', {
        path: { agent, owner: person },
        body: {
          ...(sessions ? { sessions } : {}),
          ...(cpu ? { cpu } : {}),
          ...(memory ? { memory } : {}),
          ...(gpu ? { gpu } : {}),
          ...(processes ? { processes } : {}),
          ...(folders?.length ? { folders } : {}),
          ...(logins ? { logins } : {}),
        },
      })
      await onSaved()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  const number =
    (
      value: number | undefined,
      change: (n: number) => void,
      more: { step?: number; precision?: number; suffix?: string; placeholder?: string } = {},
    ) =>
    (id: string) => (
      <InputNumber
        id={id}
        className={css.fill ?? ''}
        min={0}
        precision={0}
        placeholder={t('agents:limits.unlimited')}
        value={value || null}
        onChange={(n) => change(n ?? 0)}
        {...more}
      />
    )
  return (
    <Dialog
      title={
        owner === ''
          ? t('agents:limits.addTitle')
          : t('agents:limits.editTitle', { owner: owner === EVERYBODY ? t('agents:limits.everybody') : owner })
      }
      okText={t('common:action.save')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ loading: busy, disabled: person === '' || doubled }}
      onOk={() => void save()}
      onCancel={onClose}
    >
      <div className={css.form}>
        {owner === '' ? (
          <Row label={t('agents:limits.person')}>
            {(id) => (
              <>
                <AutoComplete
                  id={id}
                  autoFocus
                  value={form.owner}
                  options={people.map((value) => ({
                    value,
                    label: value === EVERYBODY ? `${value}: ${t('agents:limits.everybody')}` : value,
                  }))}
                  onChange={(value: string) => set({ owner: value })}
                />
                {doubled ? (
                  <div className={css.fault} role="alert">
                    {t('agents:limits.taken')}
                  </div>
                ) : (
                  <div className={css.hint}>{t('agents:limits.personHint')}</div>
                )}
              </>
            )}
          </Row>
        ) : null}
        <div className={css.two}>
          <Row label={t('agents:limits.sessions')}>{number(form.sessions, (sessions) => set({ sessions }))}</Row>
          <Row label={t('agents:limits.cpus')}>{number(form.cpu, (cpu) => set({ cpu }))}</Row>
          <Row label={t('agents:limits.memory')}>
            {number(form.memory && form.memory / GIB, (gib) => set({ memory: Math.round(gib * GIB) }), {
              precision: 2,
              suffix: 'GiB',
            })}
          </Row>
          <Row label={t('agents:limits.gpus')}>
            {number(form.gpu && form.gpu / 1000, (gpus) => set({ gpu: Math.round(gpus * 1000) }), {
              step: 0.1,
              precision: 1,
            })}
          </Row>
          <Row label={t('agents:limits.processes')}>
            {number(form.processes, (processes) => set({ processes }), {
              placeholder: t('agents:limits.usualProcesses'),
            })}
          </Row>
        </div>
        <Row label={t('agents:limits.mayMount')}>
          {(id) => (
            <>
              <Select
                id={id}
                mode="tags"
                open={false}
                suffixIcon={null}
                tokenSeparators={[',']}
                placeholder="/data/shared"
                value={form.folders ?? []}
                onChange={(folders: string[]) => set({ folders })}
              />
              <div className={css.hint}>{t('agents:limits.mountHint')}</div>
            </>
          )}
        </Row>
        <Checkbox checked={form.logins ?? false} onChange={(e) => set({ logins: e.target.checked })}>
          {t('agents:limits.logins')}
        </Checkbox>
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
