import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback } from 'react'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { forgetOpening, type Opening, setOpening, useOpenings } from '@/api/openings'
import type { App, OpenRequest } from '@/api/types.gen'
import { now } from '@/lib/now'
import { openAppTab } from '@/lib/tab'

/** Ports begin to listen and apps die while the tiles are looked at: read again this often, in milliseconds. */
const LOOK_AGAIN = 2_500

/** How a person wants an app to be opened, besides at all. */
export type OpenWish = Pick<OpenRequest, 'dir' | 'port' | 'public'>

/** What this page has to do with one app at the moment. */
export type Deed = Pick<Opening, 'since' | 'problem' | 'blocked' | 'giveUp'>

const IDLE: Deed = { since: null, problem: null, blocked: null, giveUp: null }

/** What a session can serve, and how to open it. Several may be under way at once. */
export function useApps(session: string, running: boolean, onInstead: (app: App) => void) {
  const client = useQueryClient()
  const openings = useOpenings()
  const query = useQuery({
    queryKey: keys.apps(session),
    queryFn: ({ signal }) => call('apps', { path: { id: session }, signal }),
    enabled: running,
    refetchInterval: LOOK_AGAIN,
    staleTime: 0,
  })
  const open = useCallback(
    async (app: App, text: string, wish: OpenWish = {}) => {
      const tab = openAppTab(app.title, text)
      const set = (deed: Deed) => setOpening({ session, app: app.id, title: app.title, ...deed })
      const since = now()
      const left = new AbortController()
      const giveUp = async () => {
        left.abort()
        tab.close()
        set({ ...IDLE, since })
        try {
          // What ran before goes on running: it was only to be shown.
          if (app.state !== 'ready') await call('app-stop', { path: { id: session, app: app.id } })
          forgetOpening(session, app.id)
        } catch (error) {
          set({ ...IDLE, problem: asProblem(error) })
        }
        void client.invalidateQueries({ queryKey: keys.apps(session) })
      }
      set({ ...IDLE, since, giveUp: () => void giveUp() })
      try {
        const opened = await call('app-open', {
          path: { id: session, app: app.id },
          body: { window: true, ...wish },
          signal: left.signal,
        })
        if (opened.app.door?.instead) onInstead(opened.app)
        const shown = opened.windowed || tab.show(opened.url)
        if (opened.windowed) tab.close()
        set({ ...IDLE, blocked: shown ? null : opened.url })
      } catch (error) {
        if (left.signal.aborted) return
        tab.close()
        set({ ...IDLE, problem: asProblem(error) })
      }
      void client.invalidateQueries({ queryKey: keys.apps(session) })
    },
    [client, onInstead, session],
  )
  const stop = useMutation({
    mutationFn: (app: App) => call('app-stop', { path: { id: session, app: app.id } }),
    onError: (error, app) => setOpening({ session, app: app.id, title: app.title, ...IDLE, problem: asProblem(error) }),
    onSuccess: (_, app) => forgetOpening(session, app.id),
    onSettled: () => client.invalidateQueries({ queryKey: keys.apps(session) }),
  })
  const shut = useMutation({
    mutationFn: (app: App) => call('app-door-close', { path: { id: session, app: app.id } }),
    onError: (error, app) => setOpening({ session, app: app.id, title: app.title, ...IDLE, problem: asProblem(error) }),
    onSettled: () => client.invalidateQueries({ queryKey: keys.apps(session) }),
  })
  return {
    query,
    open,
    stop,
    shut,
    deedOf: (app: string): Deed => openings.find((o) => o.session === session && o.app === app) ?? IDLE,
  }
}
