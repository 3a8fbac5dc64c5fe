import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { request } from './client'
import { keys } from './keys'
import type { Commit, ImageDisk, ImagePull, ImageRemoval, Operation } from './types.gen'

const root = '/api/v1'

export const pullImage = (body: ImagePull) => request<Operation>(`${root}/images/pull`, { method: 'POST', body })
export const removeImages = (body: ImageRemoval) =>
  request<Operation>(`${root}/images/remove`, { method: 'POST', body })
export const commitSession = (id: string, body: Commit) =>
  request<Operation>(`${root}/sessions/${encodeURIComponent(id)}/commit`, { method: 'POST', body })

/** What the images of an agent's machine take on its disk, those without a name included. */
export function useImageDisk(agent: string): UseQueryResult<ImageDisk> {
  return useQuery({
    queryKey: keys.imageDisk(agent),
    queryFn: ({ signal }) => request<ImageDisk>(`${root}/images/disk`, { signal, query: { agent } }),
    enabled: agent !== '',
  })
}
