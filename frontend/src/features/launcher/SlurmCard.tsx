import { AutoComplete, Button, Checkbox, Input, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Slurm, SlurmSite } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { formatLength } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { SlurmWords } from '@/ui/SlurmWords'
import css from './launcher.module.css'
import { Card } from './Card'
import { Field, IssueLine } from './Field'
import { parseSpan } from './queueDraft'
import { SpanInput } from './SpanInput'
import { accountChoices, devicesOf, partitionChoices, partitionOf, qosChoices, siteOf, type SlurmChoice } from './slurm'
import type { StepProps } from './StepProps'
import { useMachinesFor } from './useMachinesFor'

/** What is asked of Slurm, where a draft lands on a cluster. */
export function SlurmCard(props: StepProps) {
  const site = siteOf(props.draft, useMachinesFor(props.draft.group).machines ?? [])
  if (site) return <SiteCard {...props} site={site} />
  return props.draft.slurm ? <LeftCard {...props} /> : null
}

/** What was entered for a cluster, on a machine that is none. */
function LeftCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const issue = issues.at('slurm')
  return (
    <Card
      title={t('slurm.title')}
      bad={issue?.severity === 'error'}
      aside={<Button onClick={() => change({ slurm: null })}>{t('slurm.remove')}</Button>}
    >
      {issue ? <IssueLine issue={issue} /> : null}
      <SlurmWords slurm={draft.slurm ?? {}} />
    </Card>
  )
}

type SiteProps = StepProps & { site: SlurmSite }

function SiteCard({ site, ...props }: SiteProps) {
  const { t } = useTranslation('launcher')
  const { draft, issues, change } = props
  const slurm = draft.slurm
  const set = (entry: Partial<Slurm>) => change((old) => ({ ...old, slurm: { ...old.slurm, ...entry } }))
  const partition = partitionOf(site, slurm)
  const devices = devicesOf(partition, undefined)
  const room = partition
    ? t('slurm.room', {
        count: partition.nodes,
        cpus: partition.cpus,
        memory: formatBytes(partition.memory),
        gpus: devices.count > 0 ? ` · ${devices.count} GPU` : '',
      })
    : t('slurm.noDefault')
  const choice = (field: 'account' | 'qos', choices: readonly SlurmChoice[]) => (
    <Field
      label={t(`slurm.${field}`)}
      note={t('optional')}
      hint={choices.length === 0 ? t(`slurm.none.${field}`) : undefined}
      issue={issues.at(`slurm.${field}`)}
    >
      {(control) => (
        <ChoiceInput
          control={control}
          value={slurm?.[field]}
          choices={choices}
          placeholder={t('slurm.default')}
          onChange={(value) => set({ [field]: value })}
        />
      )}
    </Field>
  )
  return (
    <Card title={t('slurm.title')} text={t('slurm.text')}>
      <div className={css.two}>
        <Field label={t('slurm.partition')} hint={room} issue={issues.at('slurm.partition')}>
          {(control) => (
            <ChoiceInput
              control={control}
              value={slurm?.partition}
              choices={partitionChoices(site, slurm)}
              placeholder={t('slurm.defaultIs', { name: site.partitions.find((p) => p.default)?.name ?? '–' })}
              onChange={(name) => set({ partition: name })}
            />
          )}
        </Field>
        <TimeField {...props} site={site} />
        {choice('account', accountChoices(site, slurm))}
        {choice('qos', qosChoices(site, slurm))}
        <Field
          label={t('slurm.constraint')}
          note={t('optional')}
          hint={partition?.features?.length ? t('slurm.features', { names: partition.features.join(', ') }) : undefined}
          issue={issues.at('slurm.constraint')}
        >
          {(control) => (
            <AutoComplete
              {...control}
              value={slurm?.constraint ?? ''}
              options={(partition?.features ?? []).map((value) => ({ value }))}
              onChange={(constraint: string) => set({ constraint })}
            />
          )}
        </Field>
        <Field label={t('slurm.reservation')} note={t('optional')} issue={issues.at('slurm.reservation')}>
          {(control) => (
            <Input
              {...control}
              spellCheck={false}
              autoComplete="off"
              value={slurm?.reservation ?? ''}
              onChange={(event) => set({ reservation: event.target.value })}
            />
          )}
        </Field>
      </div>
      <OptionsField {...props} />
    </Card>
  )
}

interface ChoiceInputProps {
  control: { id: string; status: '' | 'error' | 'warning' }
  value: string | undefined
  choices: readonly SlurmChoice[]
  placeholder: string
  onChange: (value: string) => void
}

/** A choice of what a site has; what cannot be chosen says why. */
function ChoiceInput({ control, value, choices, placeholder, onChange }: ChoiceInputProps) {
  const { t } = useTranslation('launcher')
  return (
    <Select
      {...control}
      allowClear
      disabled={choices.length === 0 && !value}
      placeholder={placeholder}
      value={value || undefined}
      options={choices.map(({ name, why }) => ({
        value: name,
        disabled: why !== undefined,
        label: (
          <span className={css.option}>
            <span className={css.optionName}>{name}</span>
            {why ? <span className={css.size}>{t(`slurm.why.${why.key}`, { name: why.name })}</span> : null}
          </span>
        ),
      }))}
      onChange={(chosen: string | undefined) => onChange(chosen ?? '')}
    />
  )
}

function TimeField({ draft, issues, change, site }: SiteProps) {
  const { t } = useTranslation('launcher')
  const partition = partitionOf(site, draft.slurm)
  const required = site.timeRequired ?? false
  const span = parseSpan(draft.slurm?.time) ?? (required ? { value: null, unit: 'h' } : null)
  const set = (time: string) => change((old) => ({ ...old, slurm: { ...old.slurm, time } }))
  const usual = partition?.defaultTime ?? partition?.maxTime
  const limits = [
    usual && !required ? t('slurm.usualTime', { time: formatLength(usual) }) : '',
    partition?.maxTime ? t('slurm.maxTime', { time: formatLength(partition.maxTime) }) : t('slurm.noMaxTime'),
  ]
  return (
    <Field
      label={t('slurm.time')}
      note={required ? t('slurm.timeRequired') : undefined}
      hint={partition ? limits.filter(Boolean).join(' ') : undefined}
      issue={issues.at('slurm.time')}
      aside={
        required ? null : (
          <Checkbox checked={span !== null} onChange={(event) => set(event.target.checked ? '4h' : '')}>
            {t('slurm.timeUse')}
          </Checkbox>
        )
      }
    >
      {(control) =>
        span ? (
          <SpanInput
            control={control}
            label={t('slurm.time')}
            span={span}
            onChange={({ value, unit }) => set(`${value ?? ''}${unit}`)}
          />
        ) : null
      }
    </Field>
  )
}

function OptionsField({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const options = draft.slurm?.options ?? []
  const issue = issues.at('slurm.options') ?? options.map((_, i) => issues.at(`slurm.options[${i}]`)).find(Boolean)
  return (
    <Field label={t('slurm.options')} note={t('optional')} hint={t('slurm.optionsHint')} issue={issue}>
      {(control) => (
        <Input.TextArea
          {...control}
          className={css.mono}
          value={options.join('\n')}
          placeholder={t('slurm.optionsExample')}
          autoSize={{ minRows: 2, maxRows: 8 }}
          spellCheck={false}
          onChange={({ target }) =>
            change((old) => ({
              ...old,
              slurm: { ...old.slurm, options: target.value ? target.value.split('\n') : [] },
            }))
          }
        />
      )}
    </Field>
  )
}

/** The script that Slurm is given, to be copied; none where there is no Slurm. */
export function JobScript({ text }: { text: string | undefined }) {
  const { t } = useTranslation('launcher')
  if (!text) return null
  return (
    <Card title={t('slurm.sbatch')} aside={<CopyButton text={text} label={t('slurm.copySbatch')} />}>
      <pre className={css.command}>{text}</pre>
    </Card>
  )
}
