import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback } from 'react'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { type Deed, IDLE, openApp, type OpenWish } from '@/api/openApp'
import { forgetOpening, setOpening, useOpenings } from '@/api/openings'
import type { App } from '@/api/types.gen'
import { noTab, openAppTab } from '@/lib/tab'

/** Ports begin to listen and apps die while the tiles are looked at: read again this often, in milliseconds. */
const LOOK_AGAIN = 2_500

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
    (app: App, text: string, wish: OpenWish = {}) =>
      // An installation takes minutes, in which a tab would only hide its progress.
      openApp(client, session, app, wish.install ? noTab : openAppTab(app.title, text), wish, onInstead),
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
