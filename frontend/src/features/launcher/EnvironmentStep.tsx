import { Checkbox, Input, InputNumber, Segmented } from 'antd'
import { useTranslation } from 'react-i18next'
import { AcceleratorCard } from './AcceleratorCard'
import { Card } from './Card'
import { EnvFields } from './EnvFields'
import { Field, IssueLine } from './Field'
import { ImageFields } from './ImageFields'
import { ManyCard } from './ManyCard'
import { ResourceFields } from './ResourceFields'
import { SecretsCard } from './SecretsCard'
import { siteOf } from './slurm'
import { SlurmCard } from './SlurmCard'
import { SlurmGpuCard } from './SlurmGpuCard'
import css from './launcher.module.css'
import type { StepProps } from './StepProps'
import type { Judgement } from './useJudgement'
import { useMachinesFor } from './useMachinesFor'

export function EnvironmentStep({ judgement, ...props }: StepProps & { judgement: Judgement }) {
  const site = siteOf(props.draft, useMachinesFor(props.draft.group).machines ?? [])
  return (
    <>
      <ImageFields {...props} />
      <SlurmCard {...props} />
      <ResourceFields {...props} />
      {site ? <SlurmGpuCard {...props} site={site} /> : <AcceleratorCard {...props} judgement={judgement} />}
      <ManyCard {...props} nodes={site !== undefined} />
      <EnvFields {...props} />
      <SecretsCard {...props} />
      <SetupField {...props} />
      <ThreadsField {...props} />
      <AdminField {...props} />
    </>
  )
}

function SetupField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  return (
    <Card title={t('setup.title')} text={t(`setup.${draft.type}`)}>
      <Field label={t('setup.label')} note={t('optional')} hint={t('setup.hint')} issue={issues.at('setup')}>
        {(control) => (
          <Input.TextArea
            {...control}
            className={css.mono}
            value={draft.setup}
            placeholder="pip install --user einops"
            autoSize={{ minRows: 2, maxRows: 14 }}
            spellCheck={false}
            onChange={(event) => change({ setup: event.target.value })}
          />
        )}
      </Field>
    </Card>
  )
}

function AdminField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const issue = issues.at('admin')
  return (
    <Card title={t('admin.title')} text={t('admin.text')} bad={issue?.severity === 'error'}>
      <Checkbox checked={draft.admin} onChange={(event) => change({ admin: event.target.checked })}>
        {t('admin.label')}
      </Checkbox>
      {issue ? <IssueLine issue={issue} /> : null}
    </Card>
  )
}

function ThreadsField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const manual = draft.threads !== 'auto'
  const mode = (
    <Segmented
      size="small"
      aria-label={t('threads.mode')}
      value={manual ? 'manual' : 'auto'}
      options={[
        { value: 'auto', label: t('automatic') },
        { value: 'manual', label: t('manual') },
      ]}
      onChange={(value) => change({ threads: value === 'auto' ? 'auto' : 1 })}
    />
  )
  return (
    <Card
      title={t('threads.title')}
      text={t(manual ? 'threads.manualText' : 'threads.autoText', { count: draft.cpu ?? 1 })}
      aside={mode}
    >
      {manual ? (
        <Field
          label={t('threads.label')}
          issue={issues.at('threads')}
          hint={<code>OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS</code>}
        >
          {(control) => (
            <InputNumber
              {...control}
              style={{ width: 120 }}
              value={draft.threads === 'auto' ? null : draft.threads}
              onChange={(threads) => change({ threads })}
            />
          )}
        </Field>
      ) : null}
    </Card>
  )
}
