import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import type { Demo } from '@/api/types.gen'
import { SeeDemo } from './SeeDemo'

const real = { active: false, seed: 0, story: '', lab: '', lidClosed: false } as Demo
const url = 'http://127.0.0.1:7431/login?code=once'

describe('SeeDemo', () => {
  afterEach(() => vi.restoreAllMocks())

  it('starts the demo and hands out a link where the browser refuses a tab', async () => {
    vi.spyOn(window, 'open').mockReturnValue(null)
    const sent = serve({ 'GET /api/v1/demo': real, 'POST /api/v1/demo/start': { url, windowed: false } })
    renderView(<SeeDemo />)
    await userEvent.click(screen.getByRole('button', { name: 'Try the demo' }))
    expect(await screen.findByRole('link', { name: 'Open the demo' })).toHaveAttribute('href', url)
    expect(sent.at(-1)).toEqual({ method: 'POST', path: '/api/v1/demo/start', body: { window: true } })
  })

  it('opens nothing more where the desktop shows it', async () => {
    const tab = {
      closed: false,
      close: vi.fn(),
      location: { replace: vi.fn() },
      document: document.implementation.createHTMLDocument(),
    }
    vi.spyOn(window, 'open').mockReturnValue(tab as unknown as Window)
    serve({ 'GET /api/v1/demo': real, 'POST /api/v1/demo/start': { url, windowed: true } })
    renderView(<SeeDemo />)
    await userEvent.click(screen.getByRole('button', { name: 'Try the demo' }))
    await expect.poll(() => tab.close.mock.calls.length).toBe(1)
    expect(tab.location.replace).not.toHaveBeenCalled()
  })

  it('says why it does not start', async () => {
    vi.spyOn(window, 'open').mockReturnValue(null)
    serve({
      'GET /api/v1/demo': real,
      'POST /api/v1/demo/start': () => refusal(500, 'server_start_failed', 'The demo does not start.'),
    })
    renderView(<SeeDemo />)
    await userEvent.click(screen.getByRole('button', { name: 'Try the demo' }))
    expect(await screen.findByText(/The demo does not start\./)).toBeInTheDocument()
  })

  it('is not in a demo', async () => {
    serve({ 'GET /api/v1/demo': { ...real, active: true } })
    const { container } = renderView(<SeeDemo />)
    await expect.poll(() => container.querySelector('button')).toBeNull()
  })
})
