import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { call } from '@/api/client'
import { keys } from '@/api/keys'
import type { ServiceReport } from '@/api/types.gen'

interface ServiceQuery {
  from: string
  to: string
  by: 'service' | 'revision' | 'token'
}

/** The accounts of services, grouped as asked for. */
export function useServiceReport(query: ServiceQuery): UseQueryResult<ServiceReport> {
  return useQuery({
    queryKey: keys.serviceAccounts(query),
    queryFn: ({ signal }) => call('service-accounts', { query, signal }),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    refetchInterval: 30_000,
  })
}
