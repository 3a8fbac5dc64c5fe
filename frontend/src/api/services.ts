import {
  useMutation,
  type UseMutationResult,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from '@tanstack/react-query'
import { call, open } from './client'
import { keys } from './keys'
import type { Chat, DeployRequest, ModelDefinition, NewToken, Service, ServiceChange, TokenRequest } from './types.gen'

/** How often services are asked for again, in ms: their numbers change with every request. */
const often = 2000

/** The services of every machine that is reached. A page that is not visible does not ask. */
export function useServices(): UseQueryResult<Service[]> {
  return useQuery({
    queryKey: keys.services,
    queryFn: ({ signal }) => call('services', { signal }),
    refetchInterval: often,
    refetchOnWindowFocus: true,
    staleTime: 1000,
  })
}

/** What names one service: several machines may have one of the same name. */
export type ServiceRef = Pick<Service, 'name' | 'agent'>

const at = ({ name, agent }: ServiceRef) => ({ path: { service: name }, query: { agent } })

/** Puts what a change answered into the list, so that it is seen before the list is asked for again. */
function useAnswer<In>(send: (input: In) => Promise<Service>): UseMutationResult<Service, Error, In> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: send,
    onSuccess: async (service) => {
      // A list that was asked for before the change would undo it on the page.
      await client.cancelQueries({ queryKey: keys.services })
      client.setQueryData<Service[]>(keys.services, (list = []) => [
        ...list.filter((one) => one.name !== service.name || one.agent !== service.agent),
        service,
      ])
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.services }),
  })
}

/** Where a model-definition.yaml is: its path in a folder, or that of its directory. */
export interface DefinitionPlace {
  agent: string
  folder: string
  path: string
}

/** Reads how the model of a folder is served, when a person asks for it. */
export const useReadDefinition = (): UseMutationResult<ModelDefinition, Error, DefinitionPlace> =>
  useMutation({ mutationFn: (query: DefinitionPlace) => call('service-definition', { query: { ...query } }) })

export const useDeployService = (): UseMutationResult<Service, Error, DeployRequest> =>
  useAnswer((body: DeployRequest) => call('service-deploy', { body }))

export const useChangeService = (of: ServiceRef): UseMutationResult<Service, Error, ServiceChange> =>
  useAnswer((body: ServiceChange) => call('service-change', { ...at(of), body }))

function useRefreshing<In, Out>(send: (input: In) => Promise<Out>): UseMutationResult<Out, Error, In> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: send,
    gcTime: 0, // the text of a token is forgotten with the dialog that shows it
    onSettled: () => client.invalidateQueries({ queryKey: keys.services }),
  })
}

export const useRemoveService = (of: ServiceRef): UseMutationResult<void, Error, void> =>
  useRefreshing(() => call('service-remove', at(of)))

export const useAddToken = (of: ServiceRef): UseMutationResult<NewToken, Error, TokenRequest> =>
  useRefreshing((body: TokenRequest) => call('service-token', { ...at(of), body }))

export const useRevokeToken = (of: ServiceRef): UseMutationResult<void, Error, string> =>
  useRefreshing((token: string) =>
    call('service-revoke', { path: { service: of.name, token }, query: { agent: of.agent } }),
  )

/** Asks a model to continue a conversation. Its answer is a stream of events. */
export const chat = (of: ServiceRef, body: Chat, signal: AbortSignal): Promise<Response> =>
  open('service-chat', { ...at(of), body, signal })
