import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { Updates } from './Updates'

const address = 'https://host.example/latest.json'
const advice = [{ say: 'upgradeRPM', with: [{ hole: 'files', text: 'https://host.example/files/' }] }]

describe('Updates', () => {
  it('says what is missing without an address, and asks no host', async () => {
    serve({ 'GET /api/v1/updates': { address: '', advice } })
    renderView(<Updates />)
    expect(await screen.findByText(/No release host is set/)).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Check now' })).toBeDisabled()
  })
  it('shows a newer version as plain text, and how to upgrade this copy', async () => {
    const newer = { version: '1.3.0', date: '2026-11-27', notes: '### New\n- <b id="bold">Flight</b>' }
    const sent = serve({
      'GET /api/v1/updates': { address, advice },
      'POST /api/v1/updates': { address, advice, asked: '2026-11-27T10:00:00Z', newer },
    })
    const { container } = renderView(<Updates />)
    expect(await screen.findByText('The release host has not been asked yet.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Check now' }))
    expect(await screen.findByText('Slipway 1.3.0 of 2026-11-27 is available')).toBeInTheDocument()
    expect(screen.getByText(/sudo dnf upgrade slipway.*https:\/\/host\.example\/files\//)).toBeInTheDocument()
    expect(container.querySelector('pre')?.textContent).toBe(newer.notes)
    expect(container.querySelector('#bold')).toBeNull()
    expect(sent.filter((s) => s.method === 'POST')).toHaveLength(1)
  })
  it('says that there is none, or why that is unknown', async () => {
    const asked = { address, advice, asked: '2026-11-27T10:00:00Z' }
    const problem = { code: 'operation_run_failed', message: 'No.', said: [{ say: 'updateUnavailable' }] }
    serve({ 'GET /api/v1/updates': asked, 'POST /api/v1/updates': { ...asked, problem } })
    renderView(<Updates />)
    expect(await screen.findByText(/^No newer version, asked/)).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Check now' }))
    await waitFor(() => expect(screen.getByText('The release host does not answer.')).toBeInTheDocument())
  })
})
