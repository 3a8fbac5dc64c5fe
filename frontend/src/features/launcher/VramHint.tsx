import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'
import { keys } from '@/api/keys'
import { formatBytes } from '@/lib/bytes'
import type { Amount } from './amount'
import type { Draft } from './draft'
import { useLastRun } from './lastRun'
import { TakeEnough } from './TakeEnough'

interface VramHintProps {
  draft: Draft
  take: (memory: Amount) => void
}

/** What the last session like this one used of one device's memory, and an amount that would be enough. */
export function VramHint({ draft, take }: VramHintProps) {
  const { t } = useTranslation('launcher')
  const last = useLastRun(draft)?.session
  const query = { from: last?.startedAt ?? '', to: last?.terminatedAt ?? '' }
  const granted = Math.max(0, ...(last?.grants.gpus ?? []).map((grant) => grant.memory))
  const { data } = useQuery({
    queryKey: keys.accounts({ session: last?.id, ...query }),
    queryFn: ({ signal }) => call('accounts', { query, signal }),
    enabled: granted > 0 && query.from !== '' && query.to !== '',
    staleTime: Infinity,
  })
  const peak = Math.max(0, ...(data?.rows ?? []).filter((row) => row.session === last?.id).map((row) => row.vramPeak))
  if (!last || peak === 0) return null
  const used = { name: last.name, peak: formatBytes(peak), memory: formatBytes(granted) }
  const { mode, memory } = draft.accelerator
  return (
    <>
      {t('accelerator.lastRun', used)}{' '}
      {mode === 'memory' ? <TakeEnough peak={peak} asked={memory} take={take} /> : null}
    </>
  )
}
