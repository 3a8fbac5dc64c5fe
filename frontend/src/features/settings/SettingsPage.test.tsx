import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { keys } from '@/api/keys'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeMachine, testSettings } from '@/api/testing/session'
import { SettingsPage } from './SettingsPage'

const version = { version: '0.1.0', commit: 'abc', go: 'go1.26', os: 'linux', arch: 'amd64' }
const checks = [{ id: 'docker', title: 'Docker Engine', result: 'failed', text: 'It does not answer.', remedy: 'sudo systemctl start docker' }]

describe('SettingsPage', () => {
  it('saves a choice together with all others', async () => {
    const sent = serve({ 'GET /api/v1/doctor': checks, 'GET /api/v1/version': version, 'PUT /api/v1/settings': { ...testSettings, theme: 'dark' } })
    const { client } = renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await userEvent.click(screen.getByText('Dark'))
    await waitFor(() => expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({ ...testSettings, theme: 'dark' }))
    expect(client.getQueryData(keys.settings)).toMatchObject({ theme: 'dark' })
  })
  it('takes a choice back and says why when it is refused', async () => {
    serve({ 'GET /api/v1/doctor': checks, 'GET /api/v1/version': version, 'PUT /api/v1/settings': () => refusal(500, 'hub_update_internal-error', 'The disk is full.'), 'GET /api/v1/settings': testSettings })
    const { client } = renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await userEvent.click(screen.getByText('Dark'))
    expect(await screen.findByText(/The disk is full/)).toBeInTheDocument()
    await waitFor(() => expect(client.getQueryData(keys.settings)).toEqual(testSettings))
  })
  it('shows what is missing on this machine with its remedy', async () => {
    serve({ 'GET /api/v1/doctor': checks, 'GET /api/v1/version': version })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    expect(await screen.findByText('Docker Engine')).toBeInTheDocument()
    expect(screen.getByText('Missing')).toBeInTheDocument()
    expect(screen.getByText('sudo systemctl start docker')).toBeInTheDocument()
  })
})
