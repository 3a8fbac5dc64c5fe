import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { type FilePlace, listAll, placeKey } from '@/api/files'
import { keys } from '@/api/keys'
import type { FileListing } from '@/api/types.gen'
import { Uploads } from './uploads'

export function useListing(place: FilePlace, dir: string): UseQueryResult<FileListing> {
  return useQuery({
    queryKey: keys.files(placeKey(place), dir),
    queryFn: ({ signal }) => listAll(place, dir, signal),
    staleTime: 1000,
    retry: false,
  })
}

const uploads = new Uploads()

/** What is being uploaded; lists are asked for again when something has arrived. */
export function useUploads() {
  const client = useQueryClient()
  const items = useSyncExternalStore(uploads.subscribe, uploads.items)
  useEffect(() => {
    uploads.onArrived = (place) => {
      void client.invalidateQueries({ queryKey: ['files', placeKey(place)] })
      void client.invalidateQueries({ queryKey: keys.folders })
    }
  }, [client])
  return { items, uploads }
}
