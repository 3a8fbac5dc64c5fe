import { useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { App } from 'antd'
import { asProblem, call } from './client'
import { keys } from './keys'
import type { RecentProject } from './types.gen'

/** The remembered projects, kept current by the event channel. */
export function useProjects(): UseQueryResult<RecentProject[]> {
  return useQuery({
    queryKey: keys.projects,
    queryFn: ({ signal }) => call('projects', { signal }),
    staleTime: Infinity,
    gcTime: Infinity,
  })
}

export interface ProjectChanges {
  pin: (project: RecentProject) => void
  forget: (project: RecentProject) => void
}

/** Pins or unpins remembered projects, and forgets them. */
export function useProjectChanges(): ProjectChanges {
  const client = useQueryClient()
  const { message } = App.useApp()
  const { mutate } = useMutation({
    mutationFn: (send: () => Promise<unknown>) => send(),
    onError: (error) => {
      const problem = asProblem(error)
      void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.projects }),
  })
  return {
    pin: ({ id, pinned }) => mutate(() => call('project-update', { path: { id }, body: { pinned: !pinned } })),
    forget: ({ id }) => mutate(() => call('project-forget', { path: { id } })),
  }
}
