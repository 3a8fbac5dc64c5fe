import { Button, Checkbox, InputNumber, Segmented, Select, Slider, Tooltip } from 'antd'
import { TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Rounding } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { formatShare } from '@/lib/share'
import { LevelText } from '@/ui/LevelBadge'
import css from './accelerator.module.css'
import {
  ACCELERATOR_MODES,
  type AcceleratorDraft,
  type AcceleratorMode,
  type Offer,
  offerOf,
  parseAccelerator,
} from './accelerator'
import { AmountInput } from './AmountInput'
import { amountToBytes, MIB } from './amount'
import { Card } from './Card'
import { DeviceMap } from './DeviceMap'
import { type Control, Field, IssueLine } from './Field'
import { RunElsewhere } from './RunElsewhere'
import launcher from './launcher.module.css'
import { LogSlider } from './LogSlider'
import { fromMib, memoryMax, memoryStep, remainingMarks } from './scale'
import type { StepProps } from './StepProps'
import type { Judgement } from './useJudgement'
import { useDraftLacks } from './useDraftLacks'
import { useMachinesFor } from './useMachinesFor'
import { VramHint } from './VramHint'

interface PartProps {
  accelerator: AcceleratorDraft
  set: (change: Partial<AcceleratorDraft>) => void
  offer: Offer
  control: Control
}

const tidy = (n: number) => Math.round(n * 1000) / 1000

function Shares({ accelerator, set, offer, control }: PartProps) {
  const { t } = useTranslation('launcher')
  const max = Math.max(1, offer.most)
  const { quantum } = offer
  return (
    <div className={launcher.measure}>
      <Slider
        aria-label={t('accelerator.shareSlider')}
        min={quantum}
        max={max}
        step={quantum}
        value={Math.min(accelerator.shares ?? quantum, max)}
        marks={remainingMarks(
          quantum,
          max,
          tidy(max === 1 ? offer.freeOnOne : offer.freeShares),
          String,
          t('resources.free'),
        )}
        onChange={(shares) => set({ shares: tidy(shares) })}
      />
      <InputNumber
        {...control}
        style={{ width: 172 }}
        min={0}
        step={quantum}
        suffix="GPU"
        value={accelerator.shares}
        onChange={(shares) => set({ shares })}
      />
    </div>
  )
}

function Devices({ accelerator, set, offer, control }: PartProps) {
  const { t } = useTranslation('launcher')
  const max = offer.most
  return (
    <div className={launcher.measure}>
      {max > 1 ? (
        <LogSlider
          label={t('accelerator.deviceSlider')}
          chips={t('accelerator.deviceChips')}
          min={1}
          max={max}
          value={accelerator.devices ?? 1}
          remaining={offer.freeWhole}
          write={String}
          onChange={(devices) => set({ devices })}
        />
      ) : (
        <span className={launcher.only}>{t('accelerator.onlyOne')}</span>
      )}
      <InputNumber
        {...control}
        style={{ width: 172 }}
        min={0}
        suffix="GPU"
        value={accelerator.devices}
        onChange={(devices) => set({ devices })}
      />
    </div>
  )
}

function Instances({ accelerator, set, offer, control }: PartProps) {
  const { t } = useTranslation('launcher')
  const options = offer.profiles.map(({ profile, count, memory }) => ({
    value: profile,
    label: t('accelerator.profileOption', { profile, count, memory: formatBytes(memory) }),
  }))
  return (
    <div className={css.pair}>
      <Select
        {...control}
        placeholder={t('accelerator.profile')}
        value={accelerator.profile || undefined}
        options={
          options.some((o) => o.value === accelerator.profile) || !accelerator.profile
            ? options
            : [{ value: accelerator.profile, label: accelerator.profile }, ...options]
        }
        onChange={(profile) => set({ profile })}
      />
      <InputNumber
        aria-label={t('accelerator.instances')}
        min={1}
        prefix="×"
        value={accelerator.instances}
        onChange={(instances) => set({ instances })}
      />
    </div>
  )
}

function Memory({ accelerator, set, offer, control }: PartProps) {
  const { t } = useTranslation('launcher')
  const bytes = amountToBytes(accelerator.memory) ?? 0
  const step = memoryStep(offer.memory)
  const max = memoryMax(offer.memory)
  const write = (mib: number) => formatBytes(mib * MIB)
  const remaining = Math.floor(offer.freeMemory / MIB / step) * step
  return (
    <div className={launcher.measure}>
      <LogSlider
        label={t('accelerator.memorySlider')}
        chips={t('accelerator.memoryChips')}
        min={step}
        max={max}
        value={bytes / MIB}
        remaining={remaining}
        write={write}
        onChange={(mib) => set({ memory: fromMib(mib) })}
      />
      <AmountInput
        control={control}
        label={t('accelerator.memory')}
        amount={accelerator.memory}
        onChange={(memory) => set({ memory })}
      />
    </div>
  )
}

const controls: Partial<Record<AcceleratorMode, (props: PartProps) => React.JSX.Element>> = {
  shares: Shares,
  devices: Devices,
  mig: Instances,
  memory: Memory,
}

/** What would be given is not what was asked: nobody gets less without saying yes. */
function RoundingNotice({ rounded, onAccept }: { rounded: Rounding; onAccept: () => void }) {
  const { t } = useTranslation('launcher')
  return (
    <div className={css.rounding} role="alert">
      <TriangleAlert size={15} aria-hidden />
      <div>
        <b>
          {rounded.asked > 0
            ? t('accelerator.rounded', { asked: formatShare(rounded.asked), given: formatShare(rounded.given) })
            : t('accelerator.roundedMemory', { given: formatShare(rounded.given) })}
        </b>
        <div>{rounded.why}</div>
      </div>
      <Button size="small" onClick={onAccept}>
        {t('accelerator.accept', { amount: rounded.accept })}
      </Button>
    </div>
  )
}

/** What a session asks of GPUs, where that would land now, and how it is kept to it. */
export function AcceleratorCard({ draft, issues, change, judgement }: StepProps & { judgement: Judgement }) {
  const { t } = useTranslation('launcher')
  const { boards } = useMachinesFor(draft.group)
  const { accelerator } = draft
  const { mode } = accelerator
  const offer = offerOf(boards ?? [], draft.agent)
  const set = (next: Partial<AcceleratorDraft>) =>
    change((old) => ({ ...old, accelerator: { ...old.accelerator, ...next } }))
  const none = boards !== undefined && offer.devices.length === 0
  const whole = boards === undefined || offer.devices.some((d) => d.instances.length === 0)
  const possible: Record<AcceleratorMode, boolean> = {
    none: true,
    shares: whole,
    devices: whole,
    mig: offer.profiles.length > 0,
    memory: whole && offer.memory > 0,
  }
  const modes = (
    <Segmented<AcceleratorMode>
      aria-label={t('accelerator.mode')}
      value={mode}
      options={ACCELERATOR_MODES.map((value) => ({
        value,
        label: t(`accelerator.modes.${value}`),
        disabled: value !== mode && !possible[value],
      }))}
      onChange={(value) => {
        const quantum = {
          shares: accelerator.shares ?? offer.quantum,
          profile: accelerator.profile || (offer.profiles[0]?.profile ?? ''),
        }
        set({ mode: value, ...quantum })
      }}
    />
  )
  const vram =
    mode === 'shares' || mode === 'memory' ? <VramHint draft={draft} take={(memory) => set({ memory })} /> : null
  const Control = controls[mode]
  const preview = judgement.preview.data
  const rounded = judgement.current && mode !== 'none' ? preview?.rounded : undefined
  const placements = mode === 'none' ? [] : (preview?.placements ?? [])
  const issue = issues.at('accelerator')
  const mpsIssue = issues.at('mps')
  const noMps = useDraftLacks(draft)('mps')
  const text = none
    ? (boards.find((b) => (draft.agent === '' || b.agent === draft.agent) && b.text)?.text ?? t('accelerator.noneText'))
    : t(`accelerator.texts.${mode}`)
  return (
    <Card title={t('accelerator.title')} text={text} aside={modes}>
      {mode === 'none' && issue ? <IssueLine issue={issue} /> : null}
      {offer.devices.length > 0 && !(possible.mig && whole) ? (
        <div className={launcher.hint}>{t(whole ? 'accelerator.noMig' : 'accelerator.onlyMig')}</div>
      ) : null}
      {Control ? (
        <Field
          label={t(`accelerator.labels.${mode}`)}
          issue={rounded ? undefined : issue}
          hint={
            <>
              {(draft.cluster ?? 1) > 1 ? `${t('accelerator.each')} ` : null}
              {vram}
            </>
          }
        >
          {(control) => <Control accelerator={accelerator} set={set} offer={offer} control={control} />}
        </Field>
      ) : null}
      <RunElsewhere draft={draft} change={change} />
      {rounded ? (
        <RoundingNotice
          rounded={rounded}
          onAccept={() =>
            change((old) => ({ ...old, accelerator: { ...old.accelerator, ...parseAccelerator(rounded.accept) } }))
          }
        />
      ) : null}
      {mode !== 'none' && offer.devices.length > 0 ? (
        <>
          <DeviceMap boards={offer.boards} placements={placements} current={judgement.current} />
          {preview?.enforcement ? (
            <LevelText level={preview.enforcement} whole={placements.length > 0 && placements.every((p) => p.whole)} />
          ) : null}
          {mode === 'shares' || mode === 'memory' ? (
            <div className={css.options}>
              <Checkbox checked={!draft.uncooperative} onChange={(e) => change({ uncooperative: !e.target.checked })}>
                {t('accelerator.cooperative')}
              </Checkbox>
              {offer.mps || draft.mps ? (
                <Tooltip title={noMps}>
                  <Checkbox
                    checked={draft.mps}
                    disabled={noMps !== '' && !draft.mps}
                    onChange={(e) => change({ mps: e.target.checked })}
                  >
                    {t('accelerator.mps')}
                  </Checkbox>
                </Tooltip>
              ) : null}
              {mpsIssue ? <IssueLine issue={mpsIssue} /> : null}
            </div>
          ) : null}
        </>
      ) : null}
    </Card>
  )
}
