import {
  useMutation,
  useQuery,
  useQueryClient,
  type UseMutationResult,
  type UseQueryResult,
} from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'

import type { SessionBook, UsageBook } from './book'
import { ApiProblem, call } from './client'
import type { Connection } from './events'
import { keys } from './keys'
import type {
  Agent,
  DeviceBoard,
  Environment,
  Machine,
  Offer,
  Operation,
  Preset,
  Recent,
  ResourceSummary,
  Session,
  Settings,
  Usage,
  Version,
} from './types.gen'

const always = { staleTime: Infinity, gcTime: Infinity } as const

const initialConnection: Connection = { state: 'connecting', heardAt: 0, lostAt: 0 }

export function toBook(sessions: Session[]): SessionBook {
  return Object.fromEntries(sessions.map((s) => [s.id, s]))
}

/** Joins what was fetched with what events brought meanwhile: of each session the newer record. */
function newest(fetched: SessionBook, known: SessionBook | undefined): SessionBook {
  const book: SessionBook = { ...known, ...fetched }
  for (const session of Object.values(known ?? {})) {
    if (session.revision > (fetched[session.id]?.revision ?? -1)) book[session.id] = session
  }
  return book
}

/** Live sessions and the newest finished ones, kept current by the event channel. */
export function useSessionBook(): UseQueryResult<SessionBook> {
  const client = useQueryClient()
  return useQuery({
    queryKey: keys.sessions,
    queryFn: async ({ signal }) =>
      newest(
        toBook(await call('sessions', { query: { state: 'all', limit: 400 }, signal })),
        client.getQueryData<SessionBook>(keys.sessions),
      ),
    ...always,
  })
}

/** Every finished session, fetched when asked for and kept current afterwards. */
export function useFinishedBook(enabled: boolean): UseQueryResult<SessionBook> {
  return useQuery({
    queryKey: keys.finished,
    queryFn: async ({ signal }) => toBook(await call('sessions', { query: { state: 'finished' }, signal })),
    enabled,
    staleTime: Infinity,
  })
}

/** One session: from the book if it is there, else asked for. */
export function useSession(id: string): { session: Session | undefined; query: UseQueryResult<Session> } {
  const book = useSessionBook()
  const known = book.data?.[id]
  const query = useQuery({
    queryKey: keys.session(id),
    queryFn: ({ signal }) => call('session', { path: { id }, signal }),
    enabled: Boolean(id) && book.data !== undefined && !known,
    staleTime: Infinity,
  })
  return { session: known ?? query.data, query }
}

/** Whether a session is one's own, on the machine that it is on. */
export function useIsMine(): (session: { agent: string; owner: string }) => boolean {
  const agents = useAgents().data
  return useMemo(() => {
    const names = new Map((agents ?? []).map((agent) => [agent.name, agent.owner]))
    return (session) => names.get(session.agent) === session.owner
  }, [agents])
}

/** The newest sample of one session; the caller renders again only when that one changes. */
export function useLatestUsage(id: string): Usage | undefined {
  const select = useCallback((book: UsageBook) => book[id], [id])
  return useQuery({ queryKey: keys.latestUsage, queryFn: (): UsageBook => ({}), select, ...always }).data
}

/** Samples of the last hour, then live. */
export function useUsage(id: string): UseQueryResult<Usage[]> {
  return useQuery({
    queryKey: keys.usage(id),
    queryFn: ({ signal }) => call('usage', { path: { id }, signal }),
    staleTime: Infinity,
  })
}

/** The name of the only machine that there is; undefined: there are several, or none is known. */
export function useOnlyMachine(): string | undefined {
  const machines = useMachines().data
  return machines?.length === 1 ? machines[0]?.hostname : undefined
}

export function useMachines(): UseQueryResult<Machine[]> {
  return useQuery({ queryKey: keys.machines, queryFn: ({ signal }) => call('machines', { signal }), ...always })
}

/** Every agent and how it is reached, kept current by the event channel. */
export function useAgents(): UseQueryResult<Agent[]> {
  return useQuery({ queryKey: keys.agents, queryFn: ({ signal }) => call('agents', { signal }), ...always })
}

/** Long pieces of work, newest first, kept current by the event channel. */
export function useOperations(): UseQueryResult<Operation[]> {
  return useQuery({ queryKey: keys.operations, queryFn: ({ signal }) => call('operations', { signal }), ...always })
}

/** The devices of every agent with their load and holders, kept current by the event channel. */
/** The devices of every machine, those of one machine by their index. */
export function useDevices(): UseQueryResult<DeviceBoard[]> {
  return useQuery({
    queryKey: keys.devices,
    queryFn: ({ signal }) => call('devices', { signal }),
    select: byIndex,
    ...always,
  })
}

function byIndex(boards: DeviceBoard[]): DeviceBoard[] {
  return boards.map((board) => ({ ...board, devices: board.devices.toSorted((a, b) => a.index - b.index) }))
}

export function usePresets(): UseQueryResult<Preset[]> {
  return useQuery({ queryKey: keys.presets, queryFn: ({ signal }) => call('presets', { signal }), ...always })
}

/**
 * What each machine has, has promised and uses. It is not on the event channel: asked for every few seconds while
 * shown.
 */
export function useResources(): UseQueryResult<ResourceSummary[]> {
  return useQuery({
    queryKey: keys.resources,
    queryFn: ({ signal }) => call('resources', { signal }),
    refetchInterval: 4_000,
    staleTime: 1_000,
  })
}

/** The families of images that the launcher offers. */
export function useEnvironments(): UseQueryResult<Environment[]> {
  return useQuery({ queryKey: keys.environments, queryFn: ({ signal }) => call('environments', { signal }) })
}

export function useRecents(): UseQueryResult<Recent[]> {
  return useQuery({ queryKey: keys.recents, queryFn: ({ signal }) => call('recents', { signal }), ...always })
}

export function useSettings(): UseQueryResult<Settings> {
  return useQuery({ queryKey: keys.settings, queryFn: ({ signal }) => call('settings', { signal }), ...always })
}

export function useVersion(): UseQueryResult<Version> {
  return useQuery({ queryKey: keys.version, queryFn: ({ signal }) => call('version', { signal }), ...always })
}

const hour = 3_600_000

/** What the control plane knows of a newer version. */
export function useUpdates(): UseQueryResult<Offer> {
  return useQuery({
    queryKey: keys.updates,
    queryFn: ({ signal }) => call('updates', { signal }),
    staleTime: hour,
    refetchInterval: hour,
  })
}

export function useConnection(): Connection {
  const client = useQueryClient()
  const query = useQuery({
    queryKey: keys.connection,
    queryFn: () => client.getQueryData<Connection>(keys.connection) ?? initialConnection,
    initialData: initialConnection,
    ...always,
  })
  return query.data
}

/**
 * Whether the server answers but knows nothing of this browser's login. A
 * WebSocket that is refused does not say why, so an ordinary request asks.
 */
export function useLoggedOut(): boolean {
  const { state, lostAt } = useConnection()
  const probe = useQuery({
    queryKey: keys.probe(lostAt),
    queryFn: ({ signal }) => call('version', { signal }),
    enabled: state !== 'open' && lostAt > 0,
    retry: false,
    gcTime: 0,
    refetchInterval: 5_000,
  })
  return probe.error instanceof ApiProblem && probe.error.status === 401
}

/** Saves settings, shown at once and taken back if the server refuses. */
export function useSaveSettings(onError?: (error: unknown) => void): UseMutationResult<Settings, unknown, Settings> {
  const client = useQueryClient()
  return useMutation<Settings, unknown, Settings>({
    mutationFn: (settings) => call('settings-update', { body: settings }),
    onMutate: (next) => {
      client.setQueryData(keys.settings, next)
    },
    onSuccess: (saved) => client.setQueryData(keys.settings, saved),
    onError: (error) => {
      void client.invalidateQueries({ queryKey: keys.settings })
      onError?.(error)
    },
  })
}
