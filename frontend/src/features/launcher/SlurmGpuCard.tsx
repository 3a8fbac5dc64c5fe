import { InputNumber, Segmented, Select, Tooltip } from 'antd'
import { useTranslation } from 'react-i18next'
import type { SlurmSite } from '@/api/types.gen'
import css from './launcher.module.css'
import { ACCELERATOR_MODES, type AcceleratorDraft, type AcceleratorMode } from './accelerator'
import { Card } from './Card'
import { Field, IssueLine } from './Field'
import { LogSlider } from './LogSlider'
import { devicesOf, partitionOf } from './slurm'
import type { StepProps } from './StepProps'

/** What a session asks of the GPUs of each node of a partition. */
export function SlurmGpuCard({ draft, issues, change, site }: StepProps & { site: SlurmSite }) {
  const { t } = useTranslation('launcher')
  const { accelerator } = draft
  const { mode } = accelerator
  const partition = partitionOf(site, draft.slurm)
  const type = draft.slurm?.gpuType
  const { types, count, parts } = devicesOf(partition, type)
  const set = (next: Partial<AcceleratorDraft>) =>
    change((old) => ({ ...old, accelerator: { ...old.accelerator, ...next } }))
  // Without a partition it is not known what there is, and Slurm says what it lacks.
  const none = partition !== undefined && count === 0 ? t('slurm.gpu.none', { partition: partition.name }) : ''
  const why: Record<AcceleratorMode, string> = {
    none: '',
    devices: none,
    shares: none || (partition && parts === 0 ? t('slurm.gpu.whole', { partition: partition.name }) : ''),
    mig: t('slurm.gpu.neither'),
    memory: t('slurm.gpu.neither'),
  }
  const modes = (
    <Segmented<AcceleratorMode>
      aria-label={t('accelerator.mode')}
      value={mode}
      options={ACCELERATOR_MODES.map((value) => ({
        value,
        label: (
          <Tooltip title={value === mode ? '' : why[value]}>
            <span>{t(`accelerator.modes.${value}`)}</span>
          </Tooltip>
        ),
        disabled: value !== mode && why[value] !== '',
      }))}
      onChange={(value) => set({ mode: value })}
    />
  )
  const issue = issues.at('accelerator')
  const shares = mode === 'shares'
  return (
    <Card title={t('accelerator.title')} text={none || t('slurm.gpu.text')} aside={modes}>
      {mode === 'shares' || mode === 'devices' ? (
        <>
          <Field
            label={t(shares ? 'accelerator.labels.shares' : 'slurm.gpu.count')}
            hint={shares && parts > 0 ? t('slurm.gpu.parts', { count: parts }) : t('slurm.gpu.most', { count })}
            issue={issue}
          >
            {(control) => (
              <div className={css.measure}>
                {!shares && count > 1 ? (
                  <LogSlider
                    label={t('accelerator.deviceSlider')}
                    chips={t('accelerator.deviceChips')}
                    min={1}
                    max={count}
                    value={accelerator.devices ?? 1}
                    write={String}
                    onChange={(devices) => set({ devices })}
                  />
                ) : (
                  <span />
                )}
                <InputNumber
                  {...control}
                  style={{ width: 172 }}
                  min={0}
                  step={shares ? 1 / (parts || 10) : 1}
                  suffix="GPU"
                  value={shares ? accelerator.shares : accelerator.devices}
                  onChange={(value) => set(shares ? { shares: value } : { devices: value })}
                />
              </div>
            )}
          </Field>
          {types.length > 0 || type ? (
            <Field label={t('slurm.gpuType')} note={t('optional')} issue={issues.at('slurm.gpuType')}>
              {(control) => (
                <Select
                  {...control}
                  allowClear
                  style={{ width: 240 }}
                  placeholder={t('slurm.gpu.any')}
                  value={type || undefined}
                  options={types.map((value) => ({ value, label: value }))}
                  onChange={(chosen: string | undefined) =>
                    change((old) => ({ ...old, slurm: { ...old.slurm, gpuType: chosen ?? '' } }))
                  }
                />
              )}
            </Field>
          ) : null}
        </>
      ) : issue ? (
        <IssueLine issue={issue} />
      ) : null}
    </Card>
  )
}
