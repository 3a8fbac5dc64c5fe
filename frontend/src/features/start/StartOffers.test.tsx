import { act, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { forgetOpening } from '@/api/openings'
import { renderView, serve } from '@/api/testing/render'
import { makeSession, testSettings } from '@/api/testing/session'
import type { Agent, App, Environment, Machine, Preview, Session } from '@/api/types.gen'
import { StartOffers } from './StartOffers'

const environments: Environment[] = [
  {
    id: 'jupyter',
    title: 'Jupyter',
    icon: '',
    summary: '',
    versions: [{ title: '1', image: 'lab:1', installed: true, size: 0, jupyter: 'lab', agents: ['here'] }],
  },
]
const agents = [{ name: 'here', local: true }] as Agent[]
const machines = [{ agent: 'here', cpus: 2, memory: 8 * 1024 ** 3 }] as Machine[]
const image = { id: 'i' } as Preview['image']
const preview = (change: Partial<Preview> = {}) => ({ errors: [], warnings: [], agent: 'here', image, ...change })
const launched = makeSession({ id: 'aaaaaaaaaaaa', name: 'calm-fox', status: 'PENDING' })
const lab: App = { id: 'jupyterlab', title: 'JupyterLab', kind: 'web', port: 1, state: 'stopped', url: '' }
const address = 'http://jupyterlab-aaaaaaaaaaaa.localhost/?slipway_ticket=t'

function tabs() {
  const tab = {
    document: document.implementation.createHTMLDocument(''),
    opener: null,
    closed: false,
    close: vi.fn(),
    location: { replace: vi.fn() },
  }
  const open = vi.fn(() => tab)
  vi.stubGlobal('open', open)
  return { tab, open }
}

/** What the server answers to one press, from the launch to the address of the app. */
function answers(change: Record<string, unknown> = {}) {
  return serve({
    'GET /api/v1/environments': environments,
    'POST /api/v1/preview': preview(),
    'POST /api/v1/sessions': launched,
    'GET /api/v1/sessions/aaaaaaaaaaaa/apps': [lab],
    'POST /api/v1/sessions/aaaaaaaaaaaa/files/upload': {},
    'POST /api/v1/sessions/aaaaaaaaaaaa/apps/jupyterlab/open': { app: lab, url: address, windowed: false },
    ...change,
  })
}

const show = (settings = testSettings) =>
  renderView(<StartOffers review={(id) => `/launcher?recent=${id}`} />, {
    known: { sessions: [], recents: [], agents, machines, settings },
  })

const becomes = (client: ReturnType<typeof show>['client'], change: Partial<Session>) =>
  act(() =>
    applyEvent(client, { session: { ...launched, ...change, revision: 9 } } as Parameters<typeof applyEvent>[1]),
  )

/** The one request that fetch cannot make: it sends the notebook. */
class Sending {
  readonly upload = {}
  readonly status = 200
  readonly responseText = '{}'
  onload = () => {}
  onloadend = () => {}
  open() {}
  send() {
    queueMicrotask(() => {
      this.onload()
      this.onloadend()
    })
  }
}

beforeEach(() => {
  sessionStorage.clear()
  vi.stubGlobal('XMLHttpRequest', Sending)
})
afterEach(() => {
  vi.unstubAllGlobals()
  forgetOpening('aaaaaaaaaaaa', 'jupyterlab')
})

describe('quick start', () => {
  it('launches with one click, and the tab of that click shows Jupyter when the session runs', async () => {
    const { tab, open } = tabs()
    const sent = answers()
    const { client, where } = show()
    await screen.findByText('Starts at once')
    await userEvent.click(screen.getByRole('button', { name: /^JupyterLab here/ }))
    expect(open).toHaveBeenCalledTimes(1)
    await waitFor(() => expect(where()).toBe('/sessions'))
    expect(sent.find((s) => s.method === 'POST' && s.path === '/api/v1/sessions')?.body).toMatchObject({
      spec: { image: 'lab:1', resources: { cpu: 1 } },
    })
    await becomes(client, { status: 'PULLING', pull: { current: 30, total: 60 } as Session['pull'] })
    expect(tab.document.body.textContent).toBe('Downloading the image… 50 %')
    await becomes(client, { status: 'RUNNING' })
    await waitFor(() => expect(tab.location.replace).toHaveBeenCalledWith(address))
    const opening = sent.find((s) => s.path.endsWith('/jupyterlab/open'))
    expect(opening?.body).toEqual({ window: true, file: 'Untitled.ipynb' })
    expect([open.mock.calls.length, sessionStorage.getItem('slipway.awaited')]).toEqual([1, '[]'])
  })

  it('closes the tab when the session ends before it runs', async () => {
    const { tab } = tabs()
    answers()
    const { client, where } = show()
    await userEvent.click(await screen.findByRole('button', { name: /^JupyterLab here/ }))
    await waitFor(() => expect(where()).toBe('/sessions'))
    await becomes(client, { status: 'ERROR' })
    await waitFor(() => expect(tab.close).toHaveBeenCalled())
    expect(tab.location.replace).not.toHaveBeenCalled()
  })

  it('leads to the apps of a session without Jupyter', async () => {
    const { tab } = tabs()
    answers({ 'GET /api/v1/sessions/aaaaaaaaaaaa/apps': [{ ...lab, installable: true }] })
    const { client, actions, where } = show()
    await userEvent.click(await screen.findByRole('button', { name: /^JupyterLab here/ }))
    await waitFor(() => expect(where()).toBe('/sessions'))
    await becomes(client, { status: 'RUNNING' })
    await waitFor(() => expect(actions.openApps).toHaveBeenCalledWith('aaaaaaaaaaaa'))
    expect(tab.close).toHaveBeenCalled()
  })

  it('opens nothing where the setting is off, or where it would wait', async () => {
    const { open } = tabs()
    const sent = answers()
    const { client, where, unmount } = show({ ...testSettings, openApps: false })
    await userEvent.click(await screen.findByRole('button', { name: /^JupyterLab here/ }))
    await waitFor(() => expect(where()).toBe('/sessions'))
    await becomes(client, { status: 'RUNNING' })
    unmount()
    expect(sent.some((s) => s.path.endsWith('/apps'))).toBe(false)
    answers({ 'POST /api/v1/preview': preview({ wait: { message: 'Needs 2 CPUs.' } as Preview['wait'] }) })
    show()
    await screen.findByText('Waits: Needs 2 CPUs.')
    await userEvent.click(screen.getByRole('button', { name: /^JupyterLab here/ }))
    expect(open).not.toHaveBeenCalled()
  })

  it('names the other machine, and offers nothing that would be refused', async () => {
    answers({ 'POST /api/v1/preview': preview({ agent: 'lab', image: undefined }) })
    const { unmount } = show()
    await screen.findByRole('button', { name: /^JupyterLab on lab.*Downloads the image first/ })
    unmount()
    answers({ 'POST /api/v1/preview': preview({ errors: [{ field: 'image' }] as Preview['errors'] }) })
    show()
    await waitFor(() => expect(screen.queryByRole('region', { name: 'Quick start' })).not.toBeInTheDocument())
  })
})
