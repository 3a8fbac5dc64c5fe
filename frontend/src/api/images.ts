import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { call } from './client'
import { keys } from './keys'
import type { ImageDisk } from './types.gen'

/** What the images of an agent's machine take on its disk, those without a name included. */
export function useImageDisk(agent: string): UseQueryResult<ImageDisk> {
  return useQuery({
    queryKey: keys.imageDisk(agent),
    queryFn: ({ signal }) => call('image-disk', { query: { agent }, signal }),
    enabled: agent !== '',
  })
}
