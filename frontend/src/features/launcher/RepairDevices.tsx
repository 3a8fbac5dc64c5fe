import { Button, Select } from 'antd'
import { CpuIcon, MoveRight } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { useDevices } from '@/api/hooks'
import {
  type AcceleratorDraft,
  acceleratorText,
  elsewhere,
  NO_ACCELERATOR,
  type Offer,
  offerOf,
  parseAccelerator,
  totalOf,
} from './accelerator'
import { amountFromBytes, amountToBytes, GIB } from './amount'
import { movedTo } from './away'
import { setting } from './repair'
import type { ChoicesProps } from './RepairChoices'

/** What the machines offer that comes near to what was asked, the nearest first. */
export function nearOffers(asked: AcceleratorDraft, offer: Offer, rounded: string | undefined): AcceleratorDraft[] {
  const offers: AcceleratorDraft[] = rounded ? [parseAccelerator(rounded)] : []
  const shareable =
    offer.memory > 0 ? offer.boards.flatMap((b) => b.devices).filter((d) => d.instances.length === 0).length : 0
  if (asked.mode === 'memory' && shareable > 0) {
    const most = Math.floor(Math.min(amountToBytes(asked.memory) ?? offer.memory, offer.memory) / GIB) * GIB
    if (most > 0) offers.push({ ...NO_ACCELERATOR, mode: 'memory', memory: amountFromBytes(most) })
  }
  if (shareable > 0) {
    offers.push({ ...NO_ACCELERATOR, mode: 'devices', devices: 1 })
    if ((asked.mode === 'devices' || asked.mode === 'shares') && shareable > 1)
      offers.push({ ...NO_ACCELERATOR, mode: 'devices', devices: shareable })
    const half = Math.max(offer.quantum, Math.floor(0.5 / offer.quantum) * offer.quantum)
    offers.push({ ...NO_ACCELERATOR, mode: 'shares', shares: half })
  }
  offers.push(...offer.profiles.map(({ profile }): AcceleratorDraft => ({ ...NO_ACCELERATOR, mode: 'mig', profile })))
  const texts = offers.map(acceleratorText)
  return offers.filter((_, i) => texts.indexOf(texts[i] ?? '') === i && texts[i] !== acceleratorText(asked))
}

/** Other devices, or none. */
export function DeviceChoices({ draft, lack, repairs, judgement }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const boards = useDevices().data ?? []
  const folders = useFolders().data ?? []
  const words = (a: AcceleratorDraft) =>
    a.mode === 'shares' || a.mode === 'devices'
      ? t('repair.devices', { amount: totalOf(a, 1), kind: t(`accelerator.modes.${a.mode}`) })
      : totalOf(a, 1)
  const rounded = judgement.current ? judgement.preview.data?.rounded?.accept : undefined
  const offers = nearOffers(draft.accelerator, offerOf(boards, draft.agent), rounded)
  const options = offers.map((a) => ({ value: acceleratorText(a), label: words(a) }))
  const choose = (text: string) => {
    const chosen = offers.find((a) => acceleratorText(a) === text)
    if (chosen)
      repairs.repair(setting(lack, draft, words(chosen), { accelerator: { ...draft.accelerator, ...chosen } }))
  }
  return (
    <>
      {elsewhere(draft.accelerator, boards, draft.agent).map((agent) => (
        <Button
          key={agent}
          size="small"
          icon={<MoveRight size={13} />}
          onClick={() => repairs.repair(setting(lack, draft, agent, movedTo(draft, { agent, group: '' }, folders)))}
        >
          {t('copy.runOn', { agent })}
        </Button>
      ))}
      {options.length > 0 ? (
        <Select
          size="small"
          style={{ minWidth: 170 }}
          popupMatchSelectWidth={false}
          aria-label={t('repair.anotherDevice')}
          placeholder={t('repair.anotherDevice')}
          value={null}
          options={options}
          onSelect={(text: string | null) => choose(text ?? '')}
        />
      ) : null}
      <Button
        size="small"
        icon={<CpuIcon size={13} />}
        onClick={() =>
          repairs.repair(
            setting(lack, draft, t('repair.noDevice'), { accelerator: { ...draft.accelerator, mode: 'none' } }),
          )
        }
      >
        {t('repair.noDevice')}
      </Button>
    </>
  )
}
