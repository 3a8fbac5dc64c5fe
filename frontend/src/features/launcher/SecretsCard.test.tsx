import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { type Draft, EMPTY_DRAFT, fromSpec, toSpec } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'
import { shownIssues } from './issueText'
import { error } from './issues'
import { SecretsCard } from './SecretsCard'

const stored = [
  { kind: 'variable', name: 'HF_TOKEN', kept: 'keyring', updatedAt: '2026-05-01T10:00:00Z' },
  { kind: 'registry', name: 'ghcr.io', user: 'ada', kept: 'file', updatedAt: '2026-05-01T10:00:00Z' },
]

function show(secrets: string[] = []) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, secrets })
    const missing = { ...error('secrets[0]', 'secretMissing'), message: 'No secret named GONE is stored.' }
    const gone = secrets.includes('GONE') ? [missing] : []
    return (
      <>
        <SecretsCard
          draft={draft}
          issues={shownIssues(gone, new Set())}
          change={(next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))}
        />
        <output>{draft.secrets.join(' ')}</output>
      </>
    )
  }
  renderView(<Form />)
}
const chosen = () => screen.getByRole('status').textContent

it('offers the stored variables by name, and no registry login', async () => {
  serve({ 'GET /api/v1/secrets': stored })
  show()
  await userEvent.click(await screen.findByRole('checkbox', { name: 'HF_TOKEN' }))
  expect(chosen()).toBe('HF_TOKEN')
  expect(screen.queryByText('ghcr.io')).toBeNull()
  await userEvent.click(screen.getByRole('checkbox', { name: 'HF_TOKEN' }))
  expect(chosen()).toBe('')
})

it('shows a secret of a recipe that is not stored here, and why it cannot be launched', async () => {
  serve({ 'GET /api/v1/secrets': stored })
  show(['GONE'])
  expect(screen.getByRole('checkbox', { name: 'GONE' })).toBeChecked()
  expect(screen.getByRole('alert')).toHaveTextContent('No secret named GONE is stored.')
})

it('stores a new one, split from NAME=value, and selects it', async () => {
  const sent = serve({
    'GET /api/v1/secrets': [],
    'PUT /api/v1/secrets': { kind: 'variable', name: 'WANDB_API_KEY', kept: 'file', updatedAt: '2026-05-01T10:00:00Z' },
  })
  show()
  await userEvent.click(screen.getByRole('button', { name: 'Add a secret' }))
  await userEvent.click(screen.getByRole('combobox', { name: 'Name' }))
  await userEvent.paste('export WANDB_API_KEY="hush"')
  const value = screen.getByLabelText('Value')
  expect(value).toHaveValue('hush')
  expect(value).toHaveAttribute('type', 'password')
  await userEvent.click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => expect(chosen()).toBe('WANDB_API_KEY'))
  expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({ kind: 'variable', name: 'WANDB_API_KEY', value: 'hush' })
  expect(screen.queryByRole('dialog')).toBeNull()
})

it('puts names alone into the spec and the address', () => {
  const draft = { ...EMPTY_DRAFT, image: 'a:1', secrets: ['HF_TOKEN', 'HF_TOKEN=hush'] }
  expect(toSpec({ ...draft, secrets: ['HF_TOKEN'] }).secrets).toEqual(['HF_TOKEN'])
  expect(fromSpec({ image: 'a:1', resources: {}, secrets: ['HF_TOKEN'] }).secrets).toEqual(['HF_TOKEN'])
  expect(encodeDraft(draft)).not.toContain('hush')
  expect(decodeDraft(encodeDraft(draft)).secrets).toEqual(['HF_TOKEN'])
})
