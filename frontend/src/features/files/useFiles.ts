import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { encodedName, type FilePlace, listFiles, placeKey } from '@/api/files'
import { keys } from '@/api/keys'
import type { FileInfo, FileListing } from '@/api/types.gen'
import { Uploads } from './uploads'

/** A directory as a whole, its parts put together. */
async function wholeListing(place: FilePlace, dir: string, signal: AbortSignal): Promise<FileListing> {
  const listing = await listFiles(place, dir, '', signal)
  let part = listing
  while (part.more && part.entries.length > 0) {
    part = await listFiles(place, dir, encodedName(part.entries[part.entries.length - 1] as FileInfo), signal)
    listing.entries.push(...part.entries)
  }
  return listing
}

export function useListing(place: FilePlace, dir: string): UseQueryResult<FileListing> {
  return useQuery({
    queryKey: keys.files(placeKey(place), dir),
    queryFn: ({ signal }) => wholeListing(place, dir, signal),
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
