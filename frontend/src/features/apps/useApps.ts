import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { fetchApps, openApp, stopApp } from '@/api/calls'
import { type ApiProblem, asProblem } from '@/api/client'
import { keys } from '@/api/keys'
import type { App } from '@/api/types.gen'
import { openAppTab } from './appTab'

/** Ports begin to listen and apps die while the tiles are looked at: read again this often, in milliseconds. */
const LOOK_AGAIN = 2_500

/** What this page has to do with one app at the moment. */
export interface Deed {
  /** When opening began, in milliseconds since 1970; null when none is under way. */
  since: number | null
  problem: ApiProblem | null
  /** The browser refused a tab: the address to open by hand, valid for a minute. */
  blocked: string | null
}

const IDLE: Deed = { since: null, problem: null, blocked: null }

/** What a session can serve, and how to open it. Several may be under way at once. */
export function useApps(session: string, running: boolean) {
  const client = useQueryClient()
  const [deeds, setDeeds] = useState<Record<string, Deed>>({})
  const query = useQuery({
    queryKey: keys.apps(session),
    queryFn: ({ signal }) => fetchApps(session, signal),
    enabled: running,
    refetchInterval: LOOK_AGAIN,
    staleTime: 0,
  })
  const set = useCallback((app: string, deed: Deed) => setDeeds((old) => ({ ...old, [app]: deed })), [])
  const open = useCallback(
    async (app: App, text: string) => {
      const tab = openAppTab(app.title, text)
      set(app.id, { ...IDLE, since: Date.now() })
      try {
        const opened = await openApp(session, app.id, true)
        const shown = opened.windowed || tab.show(opened.url)
        if (opened.windowed) tab.close()
        set(app.id, { ...IDLE, blocked: shown ? null : opened.url })
      } catch (error) {
        tab.close()
        set(app.id, { ...IDLE, problem: asProblem(error) })
      }
      void client.invalidateQueries({ queryKey: keys.apps(session) })
    },
    [client, session, set],
  )
  const stop = useMutation({
    mutationFn: (app: string) => stopApp(session, app),
    onError: (error, app) => set(app, { ...IDLE, problem: asProblem(error) }),
    onSuccess: (_, app) => set(app, IDLE),
    onSettled: () => client.invalidateQueries({ queryKey: keys.apps(session) }),
  })
  return { query, open, stop, deedOf: (app: string): Deed => deeds[app] ?? IDLE }
}
