import type { QueryClient } from '@tanstack/react-query'
import type { SessionBook } from '@/api/book'
import { ApiProblem, asProblem, call } from '@/api/client'
import { finishUpload, writePiece } from '@/api/files'
import { keys } from '@/api/keys'
import { openApp } from '@/api/openApp'
import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import type { AppTab } from '@/lib/tab'

/** A session whose Jupyter is to open when it runs. */
export interface Awaited {
  session: string
  /** A notebook in its home, which is made if it is not there; empty: Jupyter as it opens by itself. */
  file: string
}

/** What is awaited outlives a reload of the page, not the tab of the browser. */
const stored = 'slipway.awaited'

export function awaitedBefore(): Awaited[] {
  try {
    const list: unknown = JSON.parse(sessionStorage.getItem(stored) ?? '[]')
    return Array.isArray(list) ? (list as Awaited[]) : []
  } catch {
    return []
  }
}

function remember(list: Awaited[]): void {
  try {
    sessionStorage.setItem(stored, JSON.stringify(list))
  } catch {
    // Without a store the wish ends with the page.
  }
}

/** Nobody waits for a session any longer. */
export function forgetAwaited(session: string): void {
  remember(awaitedBefore().filter((one) => one.session !== session))
}

/** Resolves with a session once it runs or has ended; undefined if it is gone. Told is called with each change. */
function settled(client: QueryClient, id: string, told: (session: Session) => void): Promise<Session | undefined> {
  return new Promise((resolve) => {
    let seen: Session | undefined
    const look = () => {
      const now = client.getQueryData<SessionBook>(keys.sessions)?.[id]
      if (now === seen) return
      seen = now
      if (now) told(now)
      if (now && now.status !== 'RUNNING' && isLive(now.status)) return
      stop()
      resolve(now)
    }
    const stop = client.getQueryCache().subscribe(look)
    look()
  })
}

/** An empty notebook, ready to be typed into. */
const emptyNotebook = JSON.stringify({
  cells: [{ cell_type: 'code', execution_count: null, id: 'first', metadata: {}, outputs: [], source: [] }],
  metadata: { kernelspec: { display_name: 'Python 3', language: 'python', name: 'python3' } },
  nbformat: 4,
  nbformat_minor: 5,
})

/** Makes an empty notebook in a session's home, unless there is a file of that name. */
async function makeNotebook(session: string, file: string): Promise<void> {
  const place = { session }
  const path = encodeURIComponent(file)
  const blob = new Blob([emptyNotebook])
  const key = `new${Date.now().toString(36)}`
  try {
    await writePiece(place, path, key, 0, blob, () => {}, new AbortController().signal)
    await finishUpload(place, path, key, { size: blob.size, conflict: 'fail' })
  } catch (error) {
    if (!(error instanceof ApiProblem && error.code === 'file_use_already-exists')) throw error
  }
}

interface Steps {
  /** Each change of the session until it runs. */
  told: (session: Session) => void
  /** There is no Jupyter in the session. */
  missing: (session: Session) => void
}

/** Opens Jupyter as soon as a session runs. Where it fails, the notifications tell. */
export async function openWhenReady(client: QueryClient, wish: Awaited, tab: AppTab, steps: Steps): Promise<void> {
  let problem: ApiProblem | null = null
  remember([...awaitedBefore().filter((one) => one.session !== wish.session), wish])
  try {
    const session = await settled(client, wish.session, steps.told)
    if (session?.status !== 'RUNNING') {
      tab.close()
      return
    }
    const [apps] = await Promise.all([
      call('apps', { path: { id: wish.session } }),
      wish.file ? makeNotebook(wish.session, wish.file) : undefined,
    ])
    const app = ['jupyterlab', 'notebook'].flatMap(
      (id) => apps.find((one) => one.id === id && !one.installable) ?? [],
    )[0]
    if (!app) {
      tab.close()
      steps.missing(session)
      return
    }
    problem = await openApp(client, wish.session, app, tab, wish.file ? { file: wish.file } : {})
  } catch (error) {
    tab.close()
    problem = asProblem(error)
    throw error
  } finally {
    // Without an answer, as when the page is left meanwhile, the next page goes on.
    if (problem?.status !== 0) forgetAwaited(wish.session)
  }
}
