// The endpoints of folders, one function each.
import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { request } from './client'
import { keys } from './keys'
import type { Folder, FolderRequest, FolderUpdate, Operation } from './types.gen'

const root = '/api/v1/folders'
const path = (id: string, rest = '') => `${root}/${encodeURIComponent(id)}${rest}`

export const fetchFolders = (signal?: AbortSignal) => request<Folder[]>(root, { signal })
export const createFolder = (body: FolderRequest) => request<Folder>(root, { method: 'POST', body })
export const updateFolder = (id: string, body: FolderUpdate) => request<Folder>(path(id), { method: 'PATCH', body })
export const trashFolder = (id: string) => request<Folder>(path(id, '/trash'), { method: 'POST' })
export const restoreFolder = (id: string) => request<Folder>(path(id, '/restore'), { method: 'POST' })
export const deleteFolder = (id: string) => request<Operation>(path(id), { method: 'DELETE' })
export const stopDeletingFolder = (id: string) => request<Folder>(path(id, '/stop'), { method: 'POST' })

/** How often the list is asked for again, in ms: soon while something is under way. */
const soon = 1500
const later = 15_000

/** Every folder, also those in the trash. */
export function useFolders(): UseQueryResult<Folder[]> {
  return useQuery({
    queryKey: keys.folders,
    queryFn: ({ signal }) => fetchFolders(signal),
    staleTime: 2000,
    refetchInterval: (query) => (query.state.data?.some((f) => f.counting || f.state === 'deleting') ? soon : later),
  })
}
