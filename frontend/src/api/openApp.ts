import type { QueryClient } from '@tanstack/react-query'
import { now } from '@/lib/now'
import type { AppTab } from '@/lib/tab'
import { type ApiProblem, asProblem, call } from './client'
import { keys } from './keys'
import { forgetOpening, type Opening, setOpening } from './openings'
import type { App, OpenRequest } from './types.gen'

/** How a person wants an app to be opened, besides at all. */
export type OpenWish = Pick<OpenRequest, 'dir' | 'port' | 'public' | 'file' | 'install'>

/** What this page has to do with one app at the moment. */
export type Deed = Pick<Opening, 'since' | 'problem' | 'blocked' | 'giveUp' | 'unasked'>

export const IDLE: Deed = { since: null, problem: null, blocked: null, giveUp: null }

/**
 * Opens an app of a running session, in a tab that is there already or in a window of the desktop shell. How it goes
 * is told by the openings of the page. Resolves with why it failed, if it did.
 */
export async function openApp(
  client: QueryClient,
  session: string,
  app: Pick<App, 'id' | 'title' | 'state'>,
  tab: AppTab,
  wish: OpenWish,
  onInstead: (app: App) => void = () => {},
): Promise<ApiProblem | null> {
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
  let problem: ApiProblem | null = null
  try {
    const opened = await call('app-open', {
      path: { id: session, app: app.id },
      body: { window: true, ...wish },
      signal: left.signal,
    })
    if (opened.app.door?.instead) onInstead(opened.app)
    const shown = opened.windowed || tab.show(opened.url)
    if (opened.windowed) tab.close()
    set({ ...IDLE, blocked: shown ? null : opened.url, unasked: tab.unasked })
  } catch (error) {
    if (left.signal.aborted) return null
    tab.close()
    problem = asProblem(error)
    set({ ...IDLE, problem })
  }
  void client.invalidateQueries({ queryKey: keys.apps(session) })
  return problem
}
