import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef } from 'react'
import { useAgents, useOperations } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Operation } from '@/api/types.gen'
import { isRunning } from '@/lib/operation'
import type { Change } from './useDraft'

/** Tells whether an operation copies a folder. Its subject names the machine unless that is this computer. */
export function useIsCopyOf(): (operation: Operation, name: string, agent: string) => boolean {
  const agents = useAgents().data
  return useCallback(
    ({ kind, subject }, name, agent) => {
      const here = (agents ?? []).some((a) => a.local && a.name === agent)
      return kind === 'file-copy' && subject === (here ? name : `${name} @ ${agent}`)
    },
    [agents],
  )
}

/**
 * Mounts the copy of a folder in its place once it has arrived, whatever step is shown by then. A copy may begin and
 * end between two renders, so those count that had not ended when the launcher was opened.
 */
export function useArrivals(change: Change): void {
  const client = useQueryClient()
  const operations = useOperations().data
  const isCopyOf = useIsCopyOf()
  const ended = useRef<Set<string>>(null)
  useEffect(() => {
    const over = (operations ?? []).filter((one) => one.kind === 'file-copy' && !isRunning(one))
    if (operations) ended.current ??= new Set(over.map(({ id }) => id))
    for (const operation of over) {
      const { id, state, agent, folder } = operation
      if (ended.current?.has(id)) continue
      ended.current?.add(id)
      void client.invalidateQueries({ queryKey: keys.folders })
      void client.invalidateQueries({ queryKey: keys.previews })
      if (state !== 'done' || !agent || !folder) continue
      change((old) => ({
        ...old,
        mounts: old.mounts.map((m) =>
          m.folder && m.agent && isCopyOf(operation, m.folder, m.agent) ? { ...m, folder, agent } : m,
        ),
      }))
    }
  }, [operations, change, client, isCopyOf])
}
