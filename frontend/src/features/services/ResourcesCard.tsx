import { InputNumber, Segmented, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { useAgents, useDevices, useResources } from '@/api/hooks'
import { runtimes } from '@/api/runtimes.gen'
import { isReached } from '@/lib/connection'
import { formatBytes } from '@/lib/bytes'
import { firstAmount, type GpuMode, gpuModes, shareOf } from './draft'
import { FormCard } from './FormCard'
import { FormField } from './FormField'
import css from './form.module.css'
import type { CardProps } from './ServiceForm'
import { memoryFlag } from './runtimes'

const none: never[] = []

const suffixes: Record<GpuMode, string> = { none: '', devices: 'GPU', share: '%', memory: 'GiB' }

/** Where replicas run, how many there are, and what each of them has. */
export function ResourcesCard({ draft, faults, change, deviceMemory, fixed }: CardProps & { fixed: boolean }) {
  const { t } = useTranslation('services')
  const agents = useAgents().data ?? none
  const free = useResources().data?.find((one) => one.agent === draft.agent)?.free
  const board = useDevices().data?.find((one) => one.agent === draft.agent)
  const devices = board?.devices.length ?? 0
  // In percent of a device.
  const quantum = Math.max(1, (board?.quantum ?? 100) / 10)
  const share = shareOf(draft, deviceMemory)
  const vram = memoryFlag(runtimes[draft.runtime])
  return (
    <FormCard title={t('form.resources')} text={t('form.resourcesText')}>
      <div className={css.two}>
        <FormField label={t('form.machine')} fault={faults.agent}>
          {(control) => (
            <Select
              {...control}
              disabled={fixed}
              value={draft.agent || null}
              options={agents.map((agent) => ({
                value: agent.name,
                label: agent.name,
                disabled: !isReached(agent),
              }))}
              onChange={(agent) => change({ agent: agent ?? '', folder: '' })}
            />
          )}
        </FormField>
        <FormField label={t('form.replicas')} fault={faults.replicas}>
          {(control) => (
            <InputNumber
              {...control}
              min={0}
              max={64}
              precision={0}
              value={draft.replicas}
              onChange={(replicas) => change({ replicas })}
            />
          )}
        </FormField>
        <FormField
          label={t('form.cpu')}
          fault={faults.cpu}
          hint={free ? t('form.freeCpus', { count: free.cpu }) : undefined}
        >
          {(control) => (
            <InputNumber {...control} min={1} precision={0} value={draft.cpu} onChange={(cpu) => change({ cpu })} />
          )}
        </FormField>
        <FormField
          label={t('form.memory')}
          fault={faults.memory}
          hint={free ? t('form.free', { amount: formatBytes(free.memory) }) : undefined}
        >
          {(control) => (
            <InputNumber
              {...control}
              min={0.0625}
              suffix="GiB"
              value={draft.memory}
              onChange={(memory) => change({ memory })}
            />
          )}
        </FormField>
      </div>
      <FormField
        label={t('form.gpu')}
        fault={faults.gpu}
        hint={
          draft.gpu === 'none'
            ? devices === 0
              ? t('form.noDevices')
              : undefined
            : [t(`gpuText.${draft.gpu}`), vram && share ? t('form.vramSet', { flag: vram, share }) : '']
                .filter(Boolean)
                .join(' ')
        }
      >
        {(control) => (
          <div className={css.inline}>
            <Segmented
              aria-label={t('form.gpu')}
              value={draft.gpu}
              options={gpuModes.map((mode) => ({ value: mode, label: t(`gpuMode.${mode}`) }))}
              onChange={(gpu) => change({ gpu, amount: firstAmount[gpu] })}
            />
            {draft.gpu === 'none' ? null : (
              <InputNumber
                {...control}
                aria-label={t(`gpuMode.${draft.gpu}`)}
                style={{ width: 120 }}
                min={draft.gpu === 'memory' ? 0.5 : 1}
                {...(draft.gpu === 'share' ? { step: quantum, max: 100 } : {})}
                suffix={suffixes[draft.gpu]}
                value={draft.amount}
                onChange={(amount) => change({ amount })}
              />
            )}
          </div>
        )}
      </FormField>
    </FormCard>
  )
}
