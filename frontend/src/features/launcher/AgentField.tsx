import { Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { useAgents, useMachines, useResources } from '@/api/hooks'
import { isReached } from '@/lib/connection'
import { formatBytes } from '@/lib/bytes'
import css from './launcher.module.css'
import { movedTo } from './away'
import { Field } from './Field'
import type { StepProps } from './StepProps'

/** Where it is to run: wherever there is room, in a resource group, or on one machine. Each says what is free on it. */
export function AgentField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const machines = useMachines().data ?? []
  const agents = useAgents().data ?? []
  const folders = useFolders().data ?? []
  const resources = useResources().data ?? []
  const groups = [...new Set(agents.map((a) => a.group))]
  const option = (agent: string, hostname: string, online: boolean) => {
    const free = resources.find((r) => r.agent === agent)?.free
    const gpu = resources.find((r) => r.agent === agent)?.total.gpu
      ? t('agent.gpu', { count: Math.round((free?.gpu ?? 0) / 100) / 10 })
      : ''
    const machine = machines.find((m) => m.agent === agent)
    const room = machine?.slurm
      ? t('slurm.partitions', { count: machine.slurm.partitions.length })
      : machine
        ? t('agent.free', {
            count: Math.max(0, free?.cpu ?? machine.cpus - machine.usedCpus),
            memory: formatBytes(Math.max(0, free?.memory ?? machine.memory - machine.usedMemory)),
            gpu,
          })
        : ''
    const several = agents.length > 1
    return {
      value: `agent ${agent}`,
      disabled: !online,
      title: agent,
      label: (
        <span className={css.option}>
          <span className={css.optionName}>{several ? agent : hostname || agent}</span>
          <span className={css.size}>{online ? room : t('agent.offline')}</span>
        </span>
      ),
    }
  }
  // An agent whose machine nobody has seen yet is listed too: it can be waited for, not chosen.
  const names = [...new Set([...machines.map((m) => m.agent), ...agents.map((a) => a.name)])]
  const options = [
    { value: '', title: t('agent.auto'), label: t('agent.auto') },
    ...(groups.length > 1
      ? groups.map((group) => ({ value: `group ${group}`, title: group, label: t('agent.anyOf', { group }) }))
      : []),
    ...names.map((name) => {
      const machine = machines.find((m) => m.agent === name)
      const agent = agents.find((a) => a.name === name)
      return option(name, machine?.hostname ?? '', Boolean(machine?.online) && (!agent || isReached(agent)))
    }),
  ]
  const value = draft.agent ? `agent ${draft.agent}` : draft.group ? `group ${draft.group}` : ''
  const data = draft.mounts
    .filter((mount) => mount.agent !== undefined && mount.agent === draft.agent)
    .map((mount) => mount.folder)
    .join(', ')
  const choose = (chosen: string) => {
    const [kind = '', name = ''] = [chosen.slice(0, chosen.indexOf(' ')), chosen.slice(chosen.indexOf(' ') + 1)]
    const to = { agent: kind === 'agent' ? name : '', group: kind === 'group' ? name : '' }
    change((old) => movedTo(old, to, folders))
  }
  return (
    <Field
      label={t('agent.label')}
      issue={issues.at('agent') ?? issues.at('group')}
      hint={value === '' ? t('agent.autoHint') : data ? t('agent.hasData', { names: data }) : undefined}
    >
      {(control) => <Select {...control} value={value} options={options} onChange={choose} />}
    </Field>
  )
}
