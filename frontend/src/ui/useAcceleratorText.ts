import { useTranslation } from 'react-i18next'
import type { AcceleratorSubject } from '@/lib/accelerator'
import { formatBytes } from '@/lib/bytes'
import { formatShare } from '@/lib/share'

/** Returns what writes a request for devices in words: "0.5 GPU", "2 whole GPUs", "1 × 1g.10gb", "12 GiB VRAM". */
export function useAcceleratorText(): (a: AcceleratorSubject | undefined) => string {
  const { t } = useTranslation()
  return (a) => {
    if (a?.devices) return t('gpu.whole', { count: a.devices })
    if (a?.shares) return t('gpu.shares', { count: a.shares > 1000 ? 2 : 1, share: formatShare(a.shares) })
    if (a?.profile) return t('gpu.mig', { count: a.count ?? 1, profile: a.profile })
    if (a?.memory) return t('gpu.vram', { amount: formatBytes(a.memory) })
    return t('gpu.none')
  }
}
