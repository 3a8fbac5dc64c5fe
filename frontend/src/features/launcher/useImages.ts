import { useQuery } from '@tanstack/react-query'
import { fetchEnvironmentFile, fetchEnvironments, fetchImages } from '@/api/calls'
import { keys } from '@/api/keys'

/** Families of images, and those that are on the machine. */
export function useImages() {
  const environments = useQuery({ queryKey: keys.environments, queryFn: ({ signal }) => fetchEnvironments(signal) })
  const images = useQuery({ queryKey: keys.images, queryFn: ({ signal }) => fetchImages(signal) })
  return { environments, images }
}

/** The person's own catalogue of environments, and why it cannot be used, where it cannot. */
export function useEnvironmentFile() {
  return useQuery({ queryKey: keys.environmentFile, queryFn: ({ signal }) => fetchEnvironmentFile(signal) })
}
