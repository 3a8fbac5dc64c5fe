import { Checkbox, InputNumber, Segmented } from 'antd'
import { useTranslation } from 'react-i18next'
import css from './accelerator.module.css'
import { Card } from './Card'
import { Field } from './Field'
import { type IdleDraft, METRICS, START_IDLE, START_USE, type UseDraft } from './queueDraft'
import { SpanInput } from './SpanInput'
import type { StepProps } from './StepProps'

type LengthName = 'lifetime' | 'network'

/** When a session is reclaimed: as its machine does, or by checks of its own. */
export function IdleCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const { idle } = draft
  const set = (next: Partial<IdleDraft>) =>
    change((old) => ({ ...old, idle: { ...(old.idle ?? START_IDLE), ...next } }))
  const mode = (
    <Segmented
      size="small"
      aria-label={t('idle.mode')}
      value={idle ? 'own' : 'machine'}
      options={[
        { value: 'machine', label: t('idle.asMachine') },
        { value: 'own', label: t('idle.own') },
      ]}
      onChange={(value) => change({ idle: value === 'own' ? START_IDLE : null })}
    />
  )
  const length = (name: LengthName) => (
    <Field
      key={name}
      label={t(`idle.${name}`)}
      hint={t(`idle.${name}Hint`)}
      issue={issues.at(`idle.${name}`)}
      aside={
        <Checkbox
          checked={idle?.[name] !== null}
          onChange={(e) =>
            set({ [name]: e.target.checked ? { value: 1, unit: name === 'lifetime' ? 'd' : 'h' } : null })
          }
        >
          {t('idle.use')}
        </Checkbox>
      }
    >
      {(control) => {
        const span = idle?.[name]
        return span ? (
          <SpanInput
            control={control}
            label={t(`idle.${name}`)}
            span={span}
            onChange={(next) => set({ [name]: next })}
          />
        ) : null
      }}
    </Field>
  )
  const nothing = idle && !idle.lifetime && !idle.network && !idle.use
  return (
    <Card
      title={t('idle.title')}
      text={t(idle ? (nothing ? 'idle.nothing' : 'idle.text') : 'idle.machineText')}
      aside={mode}
    >
      {idle ? (
        <>
          {(draft.type === 'batch' ? (['lifetime'] as const) : (['lifetime', 'network'] as const)).map(length)}
          <Checkbox checked={idle.use !== null} onChange={(e) => set({ use: e.target.checked ? START_USE : null })}>
            {t('idle.useCheck')}
          </Checkbox>
          {idle.use ? (
            <Use use={idle.use} set={(next) => set({ use: { ...(idle.use ?? START_USE), ...next } })} issues={issues} />
          ) : null}
          {draft.type === 'interactive' && !nothing ? (
            <Checkbox checked={idle.park} onChange={(e) => set({ park: e.target.checked })}>
              {t('idle.park')}
            </Checkbox>
          ) : null}
        </>
      ) : null}
    </Card>
  )
}

/** The check of use: what is averaged over how long, and below what it counts as too little. */
function Use({
  use,
  set,
  issues,
}: {
  use: UseDraft
  set: (change: Partial<UseDraft>) => void
  issues: StepProps['issues']
}) {
  const { t } = useTranslation(['launcher', 'common'])
  return (
    <div className={css.sub}>
      <div className={css.grid}>
        <Field
          label={t('launcher:idle.window')}
          hint={t('launcher:idle.windowHint')}
          issue={issues.at('idle.use.window')}
        >
          {(control) => (
            <SpanInput
              control={control}
              label={t('launcher:idle.window')}
              span={use.window}
              onChange={(window) => set({ window })}
            />
          )}
        </Field>
        <Field label={t('launcher:idle.grace')} hint={t('launcher:idle.graceHint')} issue={issues.at('idle.use.grace')}>
          {(control) => (
            <SpanInput
              control={control}
              label={t('launcher:idle.grace')}
              span={use.grace ?? { value: null, unit: 'm' }}
              onChange={(grace) => set({ grace: grace.value === null ? null : grace })}
            />
          )}
        </Field>
      </div>
      <div className={css.thresholds}>
        {METRICS.map((name) => (
          <Field key={name} label={t(`common:idle.metric.${name}`)} issue={issues.at(`idle.use.${name}`)}>
            {(control) => (
              <InputNumber
                {...control}
                style={{ width: '100%' }}
                min={0}
                max={100}
                suffix="%"
                placeholder={t('launcher:idle.off')}
                value={use[name]}
                onChange={(value) => set({ [name]: value })}
              />
            )}
          </Field>
        ))}
      </div>
      <Field label={t('launcher:idle.when')} issue={issues.at('idle.use')}>
        {(control) => (
          <Segmented
            id={control.id}
            style={{ alignSelf: 'flex-start' }}
            aria-label={t('launcher:idle.when')}
            value={use.any ? 'any' : 'all'}
            options={[
              { value: 'all', label: t('launcher:idle.all') },
              { value: 'any', label: t('launcher:idle.any') },
            ]}
            onChange={(value) => set({ any: value === 'any' })}
          />
        )}
      </Field>
    </div>
  )
}
