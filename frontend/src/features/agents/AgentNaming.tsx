import { AutoComplete, Button, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, type ApiProblem, call } from '@/api/client'
import type { Agent, AgentUpdate } from '@/api/types.gen'
import { ErrorState } from '@/ui/ErrorState'
import css from './agents.module.css'

/** The name of an agent and its resource group. */
export function AgentNaming({
  agent,
  groups,
  onRenamed,
}: {
  agent: Agent
  groups: readonly string[]
  onRenamed: (to: string) => void
}) {
  const { t } = useTranslation(['agents', 'common'])
  const [name, setName] = useState(agent.name)
  const [group, setGroup] = useState(agent.group)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const change: AgentUpdate = {}
  if (name.trim() !== agent.name) change.name = name.trim()
  if (group.trim() !== agent.group) change.group = group.trim() || 'default'
  const changed = Object.keys(change).length > 0 && name.trim() !== ''
  const save = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const saved = await call('agent-update', { path: { agent: agent.name }, body: change })
      if (saved.name !== agent.name) onRenamed(saved.name)
      else setGroup(saved.group)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <section className={css.section}>
      <form
        className={css.naming}
        onSubmit={(event) => {
          event.preventDefault()
          if (changed) void save()
        }}
      >
        <label>
          {t('agents:fact.name')}
          <Input value={name} disabled={agent.local} maxLength={64} onChange={(e) => setName(e.target.value)} />
        </label>
        <label>
          {t('agents:fact.group')}
          <AutoComplete
            value={group}
            options={groups.map((value) => ({ value }))}
            onChange={(value: string) => setGroup(value)}
          />
        </label>
        <Button htmlType="submit" loading={busy} disabled={!changed}>
          {t('common:action.save')}
        </Button>
      </form>
      {problem ? <ErrorState compact problem={problem} /> : null}
    </section>
  )
}
