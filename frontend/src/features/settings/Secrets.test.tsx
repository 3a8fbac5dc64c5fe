import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { Secrets } from './Secrets'

const at = '2026-05-01T10:00:00Z'
const token = { kind: 'variable', name: 'HF_TOKEN', kept: 'keyring', updatedAt: at }
const login = { kind: 'registry', name: 'ghcr.io', user: 'ada', kept: 'file', updatedAt: at }

it('says where each secret is kept, and deletes one after asking', async () => {
  const sent = serve({ 'GET /api/v1/secrets': [token, login], 'DELETE /api/v1/secrets/variable/HF_TOKEN': null })
  renderView(<Secrets kind="variable" />)
  expect(await screen.findByText(/In the keyring of this computer/)).toBeVisible()
  expect(screen.queryByText('ghcr.io')).toBeNull()
  await userEvent.click(screen.getByRole('button', { name: 'Delete HF_TOKEN' }))
  await userEvent.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Delete' }))
  await waitFor(() => expect(sent.some((s) => s.method === 'DELETE')).toBe(true))
})

it('logs in to a registry; of NVIDIA it knows the user', async () => {
  const sent = serve({
    'GET /api/v1/secrets': [],
    'PUT /api/v1/secrets': () => refusal(422, 'settings_update_invalid', 'The value is missing.'),
  })
  renderView(<Secrets kind="registry" />)
  expect(await screen.findByText('No registry logins yet.')).toBeVisible()
  await userEvent.click(screen.getByRole('button', { name: 'Add a login' }))
  await userEvent.type(screen.getByRole('combobox', { name: 'Registry' }), 'nvcr.io')
  expect(screen.getByLabelText('User name')).toHaveValue('$oauthtoken')
  await userEvent.type(screen.getByLabelText('Password or token'), 'key{Enter}')
  expect(await screen.findByText('The value is missing.')).toBeVisible()
  expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({
    kind: 'registry',
    name: 'nvcr.io',
    user: '$oauthtoken',
    value: 'key',
  })
})

it('replaces a value without asking for its name', async () => {
  const sent = serve({ 'GET /api/v1/secrets': [login], 'PUT /api/v1/secrets': login })
  renderView(<Secrets kind="registry" />)
  await userEvent.click(await screen.findByRole('button', { name: 'Replace ghcr.io' }))
  expect(screen.queryByRole('combobox')).toBeNull()
  await userEvent.type(screen.getByLabelText('Password or token'), 'new')
  await userEvent.click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
  expect(sent.find((s) => s.method === 'PUT')?.body).toMatchObject({ name: 'ghcr.io', user: 'ada', value: 'new' })
})
