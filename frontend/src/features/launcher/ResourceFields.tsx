import { InputNumber, Segmented } from 'antd'
import { useTranslation } from 'react-i18next'
import { MIN_MEMORY } from '@/api/rules.gen'
import type { Machine } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import css from './launcher.module.css'
import { AmountInput } from './AmountInput'
import { amountToBytes, GIB, MIB } from './amount'
import { Card } from './Card'
import { automaticShm } from './draft'
import { Field } from './Field'
import { useLastRun } from './lastRun'
import { PresetField } from './PresetField'
import { LogSlider } from './LogSlider'
import { fromMib, memoryMax, memoryStep } from './scale'
import { nodeOf, partitionOf, siteOf } from './slurm'
import type { StepProps } from './StepProps'
import { TakeEnough } from './TakeEnough'
import { useMachinesFor } from './useMachinesFor'
import { machineFor } from './waits'

export function ResourceFields(props: StepProps) {
  const { t } = useTranslation('launcher')
  const { machines = [] } = useMachinesFor(props.draft.group)
  const all = machineFor(props.draft.agent, machines)
  const site = siteOf(props.draft, machines)
  const partition = site && partitionOf(site, props.draft.slurm)
  const machine = all && partition ? nodeOf(all, partition) : all
  return (
    <Card title={t('resources.title')} text={t('resources.text')}>
      <div className={css.two}>
        <PresetField {...props} />
      </div>
      <CpuField {...props} machine={machine} />
      <MemoryField {...props} machine={machine} />
      <ShmField {...props} machine={machine} />
    </Card>
  )
}

const GIB_OF_MIB = GIB / MIB
const writeMib = (mib: number) => formatBytes(mib * MIB)

type MachineProps = StepProps & { machine: Machine | null }

function CpuField({ draft, issues, change, machine }: MachineProps) {
  const { t } = useTranslation('launcher')
  const max = machine?.cpus ?? 0
  const remaining = machine ? Math.max(0, machine.cpus - machine.usedCpus) : 0
  return (
    <Field label={t('resources.cpu')} issue={issues.at('resources.cpu')}>
      {(control) => (
        <div className={css.measure}>
          {max > 1 ? (
            <LogSlider
              label={t('resources.cpuSlider')}
              chips={t('resources.cpuChips')}
              min={1}
              max={max}
              value={draft.cpu ?? 1}
              remaining={remaining}
              write={String}
              onChange={(cpu) => change({ cpu })}
            />
          ) : (
            <span className={css.only}>{max === 1 ? t('resources.onlyCpu') : ''}</span>
          )}
          <InputNumber
            {...control}
            style={{ width: 172 }}
            min={0}
            suffix={t('resources.cpuUnit')}
            value={draft.cpu}
            onChange={(cpu) => change({ cpu })}
          />
        </div>
      )}
    </Field>
  )
}

function MemoryField({ draft, issues, change, machine }: MachineProps) {
  const { t } = useTranslation('launcher')
  const bytes = amountToBytes(draft.memory) ?? 0
  const step = machine ? memoryStep(machine.memory) : 64
  const max = machine ? memoryMax(machine.memory) : 0
  const min = MIN_MEMORY / MIB
  const remaining = machine ? Math.floor(Math.max(0, machine.memory - machine.usedMemory) / MIB / step) * step : 0
  return (
    <Field
      label={t('resources.memory')}
      issue={issues.at('resources.memory')}
      hint={<LastRunHint draft={draft} change={change} />}
    >
      {(control) => (
        <div className={css.measure}>
          {max > min ? (
            <LogSlider
              label={t('resources.memorySlider')}
              chips={t('resources.memoryChips')}
              chipsFrom={max >= 2 * GIB_OF_MIB ? GIB_OF_MIB : min}
              min={min}
              max={max}
              value={bytes / MIB}
              remaining={remaining}
              write={writeMib}
              onChange={(mib) => change({ memory: fromMib(mib) })}
            />
          ) : (
            <span />
          )}
          <AmountInput
            control={control}
            label={t('resources.memory')}
            amount={draft.memory}
            onChange={(memory) => change({ memory })}
          />
        </div>
      )}
    </Field>
  )
}

/** What the last session like this one used, and an amount that would be enough. */
function LastRunHint({ draft, change }: Pick<StepProps, 'draft' | 'change'>) {
  const { t } = useTranslation('launcher')
  const last = useLastRun(draft)
  if (!last) return null
  const used = { name: last.session.name, peak: formatBytes(last.peak), memory: formatBytes(last.memory) }
  return (
    <>
      {t('resources.lastRun', used)}{' '}
      <TakeEnough peak={last.peak} asked={draft.memory} take={(memory) => change({ memory })} />
    </>
  )
}

function ShmField({ draft, issues, change, machine }: MachineProps) {
  const { t } = useTranslation('launcher')
  const memory = amountToBytes(draft.memory) ?? 0
  const automatic = automaticShm(memory)
  const shm = draft.shm ? (amountToBytes(draft.shm) ?? 0) : automatic
  const mode = (
    <Segmented
      size="small"
      aria-label={t('resources.shmMode')}
      value={draft.shm ? 'manual' : 'auto'}
      options={[
        { value: 'auto', label: t('automatic') },
        { value: 'manual', label: t('manual') },
      ]}
      onChange={(value) => change({ shm: value === 'auto' ? null : fromMib(Math.round(automatic / MIB)) })}
    />
  )
  return (
    <Field
      label={t('resources.shm')}
      issue={issues.at('resources.shm')}
      aside={mode}
      hint={t('resources.shmSplit', { shm: formatBytes(shm), rest: formatBytes(Math.max(0, memory - shm)) })}
    >
      {(control) =>
        draft.shm ? (
          <div className={css.measure}>
            <LogSlider
              label={t('resources.shmSlider')}
              min={16}
              max={Math.max(32, Math.floor(Math.min(memory, machine?.memory ?? memory) / MIB) - 16)}
              value={shm / MIB}
              write={writeMib}
              onChange={(mib) => change({ shm: fromMib(mib) })}
            />
            <AmountInput
              control={control}
              label={t('resources.shm')}
              amount={draft.shm}
              onChange={(next) => change({ shm: next })}
            />
          </div>
        ) : null
      }
    </Field>
  )
}
