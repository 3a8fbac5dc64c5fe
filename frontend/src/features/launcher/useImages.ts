import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'

import { useEnvironments } from '@/api/hooks'
import { keys } from '@/api/keys'

/** Families of images, and those that are on the machine. */
export function useImages() {
  const environments = useEnvironments()
  const images = useQuery({ queryKey: keys.images, queryFn: ({ signal }) => call('images', { signal }) })
  return { environments, images }
}

/** The person's own catalogue of environments, and why it cannot be used, where it cannot. */
export function useEnvironmentFile() {
  return useQuery({ queryKey: keys.environmentFile, queryFn: ({ signal }) => call('environment-file', { signal }) })
}
