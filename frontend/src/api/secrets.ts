import {
  useMutation,
  type UseMutationResult,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from '@tanstack/react-query'
import { call } from './client'
import { keys } from './keys'
import type { Secret, SecretContent } from './types.gen'

/** The person's secrets without their values. They may change in a shell, so they are asked for again often. */
export function useSecrets(): UseQueryResult<Secret[]> {
  return useQuery({
    queryKey: keys.secrets,
    queryFn: ({ signal }) => call('secrets', { signal }),
    refetchOnWindowFocus: true,
  })
}

function useChange<In, Out>(change: (input: In) => Promise<Out>): UseMutationResult<Out, Error, In> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: change,
    gcTime: 0, // what was sent is forgotten at once
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.secrets }),
        // What a launch would do may have been refused for want of it.
        client.invalidateQueries({ queryKey: keys.previews }),
      ]),
  })
}

export const useSetSecret = (): UseMutationResult<Secret, Error, SecretContent> =>
  useChange((content: SecretContent) => call('secret-set', { body: content }))

export const useDeleteSecret = (): UseMutationResult<void, Error, Secret> =>
  useChange(({ kind, name }: Secret) => call('secret-delete', { path: { kind, name } }))
