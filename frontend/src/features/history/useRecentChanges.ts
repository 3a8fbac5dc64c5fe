import { useMutation, useQueryClient } from '@tanstack/react-query'
import { App } from 'antd'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Recent, RecentUpdate } from '@/api/types.gen'

export interface RecentChanges {
  update: (id: string, change: RecentUpdate) => void
  forget: (id: string) => void
}

/** Changes of the launch history, shown at once and taken back if the server refuses. */
export function useRecentChanges(): RecentChanges {
  const client = useQueryClient()
  const { message } = App.useApp()
  const { t } = useTranslation('history')
  const mutation = useMutation({
    mutationFn: async (work: { guess: (recents: Recent[]) => Recent[]; send: () => Promise<unknown> }) => work.send(),
    onMutate: (work) => {
      const before = client.getQueryData<Recent[]>(keys.recents)
      client.setQueryData<Recent[]>(keys.recents, (old) => (old ? work.guess(old) : old))
      return before
    },
    onError: (error, _work, before) => {
      client.setQueryData(keys.recents, before)
      const problem = asProblem(error)
      void message.error(`${t('failed')}: ${problem.message} ${problem.hint}`)
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.recents }),
  })
  return {
    update: (id, change) =>
      mutation.mutate({
        guess: (recents) =>
          recents.map((r) =>
            r.id === id ? { ...r, name: change.name ?? r.name, pinned: change.pinned ?? r.pinned } : r,
          ),
        send: () => call('recent-update', { path: { id }, body: change }),
      }),
    forget: (id) =>
      mutation.mutate({
        guess: (recents) => recents.filter((r) => r.id !== id),
        send: () => call('recent-delete', { path: { id } }),
      }),
  }
}
