// The files of the session as the page itself reads and writes them: whole, and
// never over what it has not seen.

interface Entry {
  name: string
  kind: string
  size: number
  modified: number
}

/** Why something was not done, in the words of the session. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message)
  }
}

const versionHeader = 'Slipway-Version'
/** The version of a file that is not there yet. */
export const unwritten = 'new'

async function call(path: string, query: Record<string, string>, init: RequestInit = {}): Promise<Response> {
  const search = new URLSearchParams(query).toString()
  const response = await fetch(new URL(`api/${path}${search ? `?${search}` : ''}`, document.baseURI), {
    ...init,
    credentials: 'same-origin',
  })
  if (response.ok) return response
  const problem = (await response.json().catch(() => ({}))) as { code?: string; message?: string; hint?: string }
  throw new Refused(problem.code ?? 'server_answer_invalid', problem.message ?? response.statusText, problem.hint ?? '')
}

export async function listDirectory(path: string): Promise<Entry[]> {
  const { entries } = (await (await call('list', { path })).json()) as { entries: Entry[] }
  return entries
}

export async function readFile(path: string): Promise<{ text: string; version: string }> {
  const response = await call('contents', { path })
  return { text: await response.text(), version: response.headers.get(versionHeader) ?? '' }
}

/**
 * Writes a file if it is still of that version, and returns the new one. An empty version replaces whatever is there.
 */
export async function writeFile(path: string, text: string, version: string): Promise<string> {
  const headers = { 'Content-Type': 'application/octet-stream', [versionHeader]: version }
  const response = await call('contents', { path }, { method: 'PUT', body: text, headers })
  return response.headers.get(versionHeader) ?? ''
}

export async function tellKernel(id: string, state: 'busy' | 'idle'): Promise<void> {
  await call(
    `kernels/${id}`,
    {},
    { method: 'PUT', body: JSON.stringify({ state }), headers: { 'Content-Type': 'application/json' } },
  )
}

/** Goes out even while the page closes. */
export function tellGone(id: string): void {
  void call(`kernels/${id}`, {}, { method: 'DELETE', keepalive: true }).catch(() => undefined)
}
