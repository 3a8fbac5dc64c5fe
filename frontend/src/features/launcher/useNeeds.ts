import { useTranslation } from 'react-i18next'
import type { Environment } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'

/** What an environment says it needs, in a few words; empty where it says nothing. */
export function useNeeds(): (environment: Environment) => string {
  const { t } = useTranslation('launcher')
  return ({ minCpu = 0, minMemory = 0, accelerator }) => {
    const amounts = [
      minCpu > 0 ? t('needs.cpu', { count: minCpu }) : '',
      minMemory > 0 ? formatBytes(minMemory) : '',
      accelerator === 'required' ? 'GPU' : '',
    ]
      .filter(Boolean)
      .join(', ')
    return [amounts ? t('needs.least', { amounts }) : '', accelerator === 'optional' ? t('needs.gpuUsed') : '']
      .filter(Boolean)
      .join(' ')
  }
}
