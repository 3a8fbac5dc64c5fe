import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { forgetOpening } from '@/api/openings'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { App } from '@/api/types.gen'
import { AppsModal } from './AppsModal'

const session = makeSession({ id: 'aaaaaaaaaaaa', name: 'train-a', status: 'RUNNING' })
const app = (state: App['state']): App => ({
  id: 'notebook',
  title: 'Notebook',
  kind: 'web',
  port: 7431,
  state,
  url: 'http://notebook.localhost/',
})

/** A server whose app takes for ever to open, and fails when it is let go. */
function starting(state: App['state'], stop: () => Response = () => new Response(null, { status: 204 })) {
  const close = vi.fn()
  vi.stubGlobal('open', () => ({
    document: document.implementation.createHTMLDocument(''),
    closed: false,
    close,
    location: { replace: vi.fn() },
  }))
  let answer: (response: Response) => void = () => undefined
  const opening = new Promise<Response>((resolve) => (answer = resolve))
  const sent = serve({
    'GET /api/v1/sessions/aaaaaaaaaaaa': session,
    'GET /api/v1/sessions/aaaaaaaaaaaa/apps': [app(state)],
    'POST /api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open': () => opening as unknown as Response,
    'POST /api/v1/sessions/aaaaaaaaaaaa/apps/notebook/stop': stop,
  })
  const stops = () => sent.filter((call) => call.path.endsWith('/stop')).length
  return {
    close,
    stops,
    fail: () => answer(refusal(409, 'app_open_conflict', 'Notebook was stopped before it answered.')),
  }
}

afterEach(() => {
  vi.unstubAllGlobals()
  forgetOpening('aaaaaaaaaaaa', 'notebook')
})

describe('the start of an app', () => {
  it('is given up from its tile, and nothing is told of it as a failure', async () => {
    const { close, stops, fail } = starting('stopped')
    renderView(<AppsModal sessionId={session.id} onClose={vi.fn()} />, { known: { sessions: [session] } })
    await userEvent.click(await screen.findByText('Notebook'))
    expect(await screen.findByText(/^Starting…/)).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Cancel starting Notebook' }))
    await waitFor(() => expect(screen.queryByText(/^Starting…/)).not.toBeInTheDocument())
    fail()
    expect(await screen.findByText('Not started')).toBeInTheDocument()
    expect([stops(), close.mock.calls.length, screen.queryByRole('alert')]).toEqual([1, 1, null])
  })
  it('says why it could not be given up', async () => {
    const { stops, fail } = starting('stopped', () =>
      refusal(503, 'agent_call_unavailable', 'The agent lab is not connected.'),
    )
    renderView(<AppsModal sessionId={session.id} onClose={vi.fn()} />, { known: { sessions: [session] } })
    await userEvent.click(await screen.findByText('Notebook'))
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel starting Notebook' }))
    fail()
    expect(await screen.findByRole('alert')).toHaveTextContent('The agent lab is not connected.')
    expect(stops()).toBe(1)
  })
  it('that ran already goes on running when its opening is given up', async () => {
    const { stops, fail } = starting('ready')
    renderView(<AppsModal sessionId={session.id} onClose={vi.fn()} />, { known: { sessions: [session] } })
    await userEvent.click(await screen.findByText('Notebook'))
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel starting Notebook' }))
    fail()
    expect(await screen.findByText('Ready')).toBeInTheDocument()
    expect(stops()).toBe(0)
  })
})
