import { useTranslation } from 'react-i18next'
import type { Environment } from '@/api/types.gen'
import { findVersion } from '@/api/environment'
import { formatBytes } from '@/lib/bytes'
import { splitImage } from '@/lib/image'
import { totalOf } from './accelerator'
import { amountToBytes } from './amount'
import { placeOf } from './away'
import type { Draft, Step } from './draft'
import { expandPorts } from './ports'

/** What each step holds, in a few words. */
export function useSummary(draft: Draft, families: readonly Environment[]): Partial<Record<Step, string>> {
  const { t } = useTranslation('launcher')
  const found = findVersion(families, draft.image)
  const memory = amountToBytes(draft.memory)
  const image = found ? found.family.title : draft.image ? splitImage(draft.image).name : ''
  const amounts = t('resources.amounts', {
    cpus: draft.cpu ?? '–',
    memory: memory === null ? '–' : formatBytes(memory),
  })
  const { mode } = draft.accelerator
  const total = totalOf(draft.accelerator, 1)
  const gpu = mode === 'none' ? '' : mode === 'memory' || mode === 'mig' ? total : `${total} GPU`
  const times = (draft.cluster ?? 1) * (draft.count ?? 1)
  const asked = [amounts, gpu, times > 1 ? `× ${times}` : ''].filter(Boolean).join(' · ')
  const ports = expandPorts(draft.ports).length
  return {
    type: [t(`type.${draft.type}`), draft.name, placeOf(draft) || draft.group].filter(Boolean).join(' · '),
    environment: image ? `${image} · ${asked}` : asked,
    storage: draft.mounts.length > 0 ? t('summary.mounts', { count: draft.mounts.length }) : t('summary.noMounts'),
    network: [
      ports > 0 ? t('summary.ports', { count: ports }) : t('summary.noPorts'),
      draft.noSSH ? t('summary.noSSH') : '',
    ]
      .filter(Boolean)
      .join(' · '),
  }
}
