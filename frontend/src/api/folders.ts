import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { call } from './client'
import { keys } from './keys'
import type { Folder } from './types.gen'

/** How often the list is asked for again, in ms: soon while something is under way. */
const soon = 1500
const later = 15_000

/** Every folder, also those in the trash. */
export function useFolders(): UseQueryResult<Folder[]> {
  return useQuery({
    queryKey: keys.folders,
    queryFn: ({ signal }) => call('folders', { signal }),
    staleTime: 2000,
    refetchInterval: (query) => (query.state.data?.some((f) => f.counting || f.state === 'deleting') ? soon : later),
  })
}
