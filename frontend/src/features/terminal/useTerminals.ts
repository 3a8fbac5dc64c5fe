import {
  useMutation,
  useQuery,
  useQueryClient,
  type UseMutationResult,
  type UseQueryResult,
} from '@tanstack/react-query'
import { type RefObject, useRef } from 'react'
import { call } from '@/api/client'

import { keys } from '@/api/keys'
import type { Terminal } from '@/api/types.gen'

/** A shell begins with this size; its viewer asks for its own at once. */
const FIRST_SIZE = { cols: 120, rows: 32 }

/** Another window may open or close a shell: the list is read again this often, in milliseconds. */
const LOOK_AGAIN = 10_000

interface Terminals {
  /** Ids of the shells that this page has opened itself. */
  opened: RefObject<ReadonlySet<string>>
  query: UseQueryResult<Terminal[]>
  /** Opens a shell in the kernel of that name; without one in the first. */
  open: UseMutationResult<Terminal, Error, string | undefined>
  close: UseMutationResult<undefined, Error, string>
}

/** The shells of a session, oldest first. */
export function useTerminals(session: string, running: boolean): Terminals {
  const client = useQueryClient()
  const key = keys.terminals(session)
  const opened = useRef<ReadonlySet<string>>(new Set())
  const query = useQuery({
    queryKey: key,
    queryFn: async ({ signal }) =>
      (await call('terminals', { path: { id: session }, signal })).toSorted((a, b) =>
        a.createdAt.localeCompare(b.createdAt),
      ),
    enabled: running,
    refetchInterval: LOOK_AGAIN,
    refetchOnWindowFocus: true,
  })
  const open = useMutation({
    mutationFn: (kernel: string | undefined) =>
      call('terminal-open', { path: { id: session }, body: { ...FIRST_SIZE, ...(kernel ? { kernel } : {}) } }),
    onSuccess: (terminal) => {
      opened.current = new Set([...opened.current, terminal.id])
      client.setQueryData<Terminal[]>(key, (old = []) => [...old.filter((t) => t.id !== terminal.id), terminal])
    },
  })
  const close = useMutation({
    mutationFn: (id: string) => call('terminal-close', { path: { id: session, terminal: id } }),
    onMutate: (id) => client.setQueryData<Terminal[]>(key, (old) => old?.filter((t) => t.id !== id)),
    onSettled: () => client.invalidateQueries({ queryKey: key }),
  })
  return { opened, query, open, close }
}
