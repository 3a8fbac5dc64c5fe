import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { forgetOpening } from '@/api/openings'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { App } from '@/api/types.gen'
import { AppsModal } from './AppsModal'

const session = makeSession({ id: 'aaaaaaaaaaaa', name: 'plain-a', status: 'RUNNING' })
const lab: App = {
  id: 'jupyterlab',
  title: 'JupyterLab',
  kind: 'web',
  port: 1,
  state: 'stopped',
  url: '',
  installable: true,
}
const url = 'http://jupyterlab-aaaaaaaaaaaa.localhost/?slipway_ticket=t'

/** A server whose installation ends when it is told how. */
function installing(progress = '') {
  const open = vi.fn()
  vi.stubGlobal('open', open)
  let end: (response: Response) => void = () => undefined
  const ended = new Promise<Response>((resolve) => (end = resolve))
  let now = lab
  const sent = serve({
    'GET /api/v1/sessions/aaaaaaaaaaaa': session,
    'GET /api/v1/sessions/aaaaaaaaaaaa/apps': () => new Response(JSON.stringify([now])),
    'POST /api/v1/sessions/aaaaaaaaaaaa/apps/jupyterlab/open': () => {
      now = { ...lab, state: 'starting', progress }
      return ended as unknown as Response
    },
    'POST /api/v1/sessions/aaaaaaaaaaaa/apps/jupyterlab/stop': () => new Response(null, { status: 204 }),
  })
  return {
    open,
    sent,
    end: (response: Response, after: App = lab) => {
      now = after
      end(response)
    },
  }
}

const show = () => {
  const view = renderView(<AppsModal sessionId={session.id} onClose={vi.fn()} />, { known: { sessions: [session] } })
  return { ...view, look: () => view.client.invalidateQueries({ queryKey: ['apps', session.id] }) }
}

afterEach(() => {
  vi.unstubAllGlobals()
  forgetOpening('aaaaaaaaaaaa', 'jupyterlab')
})

describe('an app that the image lacks', () => {
  it('is installed with one click, shows how far it is, and is opened by a link', async () => {
    const { open, sent, end } = installing('Downloading jupyterlab-4.5.whl (12 MB)')
    const { look } = show()
    await userEvent.click(await screen.findByRole('button', { name: /^Install JupyterLab\s*Not in the image/ }))
    await look()
    expect(await screen.findByText('Downloading jupyterlab-4.5.whl (12 MB)')).toBeInTheDocument()
    expect(screen.getByText(/^Installing… /)).toBeInTheDocument()
    expect(sent.find((s) => s.path.endsWith('/open'))?.body).toEqual({ window: true, install: true })
    end(new Response(JSON.stringify({ app: lab, url, windowed: false })), {
      ...lab,
      installable: false,
      state: 'ready',
    })
    expect(await screen.findByRole('link', { name: 'Open it here' })).toHaveAttribute('href', url)
    expect(open).not.toHaveBeenCalled()
    expect(screen.queryByText(/did not open a tab/)).not.toBeInTheDocument()
  })
  it('is cancelled', async () => {
    const { sent } = installing()
    show()
    await userEvent.click(await screen.findByRole('button', { name: /^Install JupyterLab/ }))
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel starting JupyterLab' }))
    await waitFor(() => expect(sent.filter((s) => s.path.endsWith('/stop'))).toHaveLength(1))
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
  })
  it('says why it was not installed, and can be tried again', async () => {
    const { end } = installing()
    show()
    await userEvent.click(await screen.findByRole('button', { name: /^Install JupyterLab/ }))
    end(refusal(409, 'app_start_not-installed', 'JupyterLab was not installed: the session cannot reach the index.'))
    expect(await screen.findByRole('alert')).toHaveTextContent('the session cannot reach the index')
    expect(screen.getByRole('button', { name: /^Install JupyterLab/ })).toBeEnabled()
  })
})
