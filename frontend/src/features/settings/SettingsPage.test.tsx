import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { keys } from '@/api/keys'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeMachine, testSettings } from '@/api/testing/session'
import { SettingsPage } from './SettingsPage'

const version = { version: '0.1.0', commit: 'abc', go: 'go1.26', os: 'linux', arch: 'amd64' }
const checks = [
  {
    id: 'docker',
    title: 'Docker Engine',
    result: 'failed',
    text: 'It does not answer.',
    remedy: 'sudo systemctl start docker',
  },
]

const quantum = {
  name: 'gpu.quantum',
  kind: 'number',
  text: 'The smallest share.',
  default: '0.1',
  value: '0.1',
  set: false,
  variable: 'SLIPWAY_GPU_QUANTUM',
  override: '',
  restart: true,
}
const theme = {
  ...quantum,
  name: 'theme',
  kind: 'text',
  choices: ['system', 'light', 'dark'],
  default: 'system',
  value: 'system',
  variable: 'SLIPWAY_THEME',
}
const file = { path: '/home/ada/settings.json', settings: [theme, quantum], problems: [] }

describe('SettingsPage', () => {
  it('saves a choice together with all others', async () => {
    const sent = serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
      'PUT /api/v1/settings': { ...testSettings, theme: 'dark' },
    })
    const { client } = renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await userEvent.click(screen.getByText('Dark'))
    await waitFor(() => expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({ ...testSettings, theme: 'dark' }))
    expect(client.getQueryData(keys.settings)).toMatchObject({ theme: 'dark' })
  })
  it('saves how terminals look with the rest', async () => {
    const sent = serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
      'PUT /api/v1/settings': { ...testSettings, terminalReader: true },
    })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await userEvent.click(screen.getByRole('switch', { name: 'Screen reader support' }))
    await waitFor(() =>
      expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({ ...testSettings, terminalReader: true }),
    )
    await userEvent.type(screen.getByRole('textbox', { name: 'Font' }), "Fira Code'{Enter}")
    await waitFor(() =>
      expect(sent.filter((s) => s.method === 'PUT').at(-1)?.body).toMatchObject({ terminalFamily: 'Fira Code' }),
    )
  })
  it('takes a choice back and says why when it is refused', async () => {
    serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
      'PUT /api/v1/settings': () => refusal(500, 'settings_update_failed', 'The disk is full.'),
      'GET /api/v1/settings': testSettings,
    })
    const { client } = renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await userEvent.click(screen.getByText('Dark'))
    expect(await screen.findByText(/The disk is full/)).toBeInTheDocument()
    await waitFor(() => expect(client.getQueryData(keys.settings)).toEqual(testSettings))
  })
  it('shows what is missing on this machine with its remedy', async () => {
    serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
    })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    expect(await screen.findByText('Docker Engine')).toBeInTheDocument()
    expect(screen.getByText('Failed')).toBeInTheDocument()
    expect(screen.getByText('sudo systemctl start docker')).toBeInTheDocument()
  })
  it('finds settings by words of their label, text and name', async () => {
    serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
    })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    await screen.findByText('Smallest share')
    await userEvent.type(screen.getByRole('textbox', { name: 'Search settings' }), 'quantum')
    expect(screen.queryByText('Theme')).toBeNull()
    expect(screen.getByText('Smallest share')).toBeInTheDocument()
    await userEvent.type(screen.getByRole('textbox', { name: 'Search settings' }), 'x')
    expect(screen.getByText('No settings match “quantumx”.')).toBeInTheDocument()
  })
  it('saves a setting of the file when its field is left, and takes it out again', async () => {
    const set = { ...file, settings: [theme, { ...quantum, value: '0.25', set: true }] }
    const sent = serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': file,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
      'PATCH /api/v1/settings/file/gpu.quantum': set,
    })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    const field = await screen.findByRole('textbox', { name: 'Smallest share' })
    await userEvent.clear(field)
    await userEvent.type(field, '0.25{Enter}')
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ value: '0.25' }))
    await userEvent.click(await screen.findByRole('button', { name: 'Reset Smallest share to its default' }))
    await waitFor(() => expect(sent.filter((s) => s.method === 'PATCH').at(-1)?.body).toEqual({ value: null }))
  })
  it('says what a variable overrides, and the line of what cannot be used', async () => {
    const told = {
      ...file,
      settings: [{ ...theme, override: 'dark', value: 'dark' }, quantum],
      problems: [{ line: 3, name: 'gpu.quantum', message: '7 is not between 0.01 and 1.' }],
    }
    serve({
      'GET /api/v1/secrets': [],
      'GET /api/v1/notifier': { desktop: true },
      'GET /api/v1/settings/file': told,
      'GET /api/v1/doctor': checks,
      'GET /api/v1/version': version,
    })
    renderView(<SettingsPage />, { known: { settings: testSettings, machines: [makeMachine()] } })
    expect(await screen.findByText('Set by SLIPWAY_THEME')).toBeInTheDocument()
    expect(screen.getByRole('alert')).toHaveTextContent('Line 3 · gpu.quantum: 7 is not between 0.01 and 1.')
  })
})
