import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeAgent, makeSession } from '@/api/testing/session'
import type { Operation, RelocationPlan } from '@/api/types.gen'
import { MoveDialog } from './MoveDialog'

const study = makeSession({ id: 'one', name: 'study', status: 'RUNNING' })
const here = makeAgent({ name: study.agent })
const lab = makeAgent({ name: 'lab', local: false })
const at = '/api/v1/sessions/one/relocation'
const plan: RelocationPlan = { agent: 'lab', files: 3, bytes: 8 * 1024 ** 2, more: false, seconds: 90, image: 0 }
const begun: Operation = {
  id: 'op',
  kind: 'session-copy',
  subject: 'study',
  agent: 'lab',
  state: 'running',
  steps: [],
  startedAt: '2026-01-02T03:04:05Z',
  revision: 1,
}
const answers = {
  [`GET ${at}`]: (_: unknown, query: URLSearchParams) =>
    new Response(JSON.stringify(query.get('copy') ? { ...plan, name: 'study-copy' } : plan), {
      headers: { 'Content-Type': 'application/json' },
    }),
  [`POST ${at}`]: begun,
}
const posts = (sent: ReturnType<typeof serve>) => sent.filter(({ method }) => method === 'POST').map((s) => s.body)
const show = (agents = [here, lab]) =>
  renderView(<MoveDialog id="one" onClose={vi.fn()} />, { known: { sessions: [study], agents, operations: [] } })

describe('MoveDialog', () => {
  it('moves the session, unless a copy is chosen', async () => {
    const sent = serve(answers)
    show()
    expect(screen.getByText('Its programs stop. What they have in memory is lost.')).toBeInTheDocument()
    expect(await screen.findByText('3 files of its home and folders, 8 MiB')).toBeInTheDocument()
    expect(screen.queryByRole('textbox', { name: 'Name of the copy' })).not.toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Move' }))
    await waitFor(() => expect(posts(sent)).toEqual([{ agent: 'lab' }]))
  })
  it('copies it under the name that is offered, and says what is not copied', async () => {
    const sent = serve(answers)
    show()
    await userEvent.click(screen.getByRole('radio', { name: /^Copy/ }))
    expect(screen.getByText(/^Not copied: running processes, what they have in memory/)).toBeInTheDocument()
    expect(await screen.findByPlaceholderText('study-copy')).toBeInTheDocument()
    expect(screen.getByText('About 1m 30s at the rate of the last copy')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Copy' }))
    await waitFor(() => expect(posts(sent)).toEqual([{ agent: 'lab', copy: true, name: 'study-copy' }]))
    expect(await screen.findByRole('region', { name: 'Copy session study to lab' })).toBeInTheDocument()
    expect(screen.getByText(/^You can close this\. The copy continues/)).toBeInTheDocument()
  })
  it('says that there are no files', async () => {
    serve({ [`GET ${at}`]: { ...plan, files: 0, bytes: 0 } })
    show()
    expect(await screen.findByText('No files: its home and folders are empty.')).toBeInTheDocument()
  })
  it('takes another name, if it is one', async () => {
    const sent = serve(answers)
    show()
    await userEvent.click(screen.getByRole('radio', { name: /^Copy/ }))
    const name = await screen.findByRole('textbox', { name: 'Name of the copy' })
    await userEvent.type(name, 'a b')
    await waitFor(() => expect(screen.getByRole('button', { name: 'Copy' })).toBeDisabled())
    await userEvent.clear(name)
    await userEvent.type(name, 'twin{Enter}')
    await waitFor(() => expect(posts(sent)).toEqual([{ agent: 'lab', copy: true, name: 'twin' }]))
  })
  it('only copies where there is no other machine', async () => {
    const sent = serve(answers)
    show([here])
    expect(screen.queryByRole('radio', { name: /^Move/ })).not.toBeInTheDocument()
    expect(screen.getByText(/^A copy on the same machine has the same folders mounted/)).toBeInTheDocument()
    await screen.findByPlaceholderText('study-copy')
    await userEvent.click(screen.getByRole('button', { name: 'Copy' }))
    await waitFor(() => expect(posts(sent)).toEqual([{ agent: study.agent, copy: true, name: 'study-copy' }]))
  })
  it('says why it cannot, before', async () => {
    serve({ [`GET ${at}`]: () => refusal(409, 'engine_create_unsupported', 'Podman makes no images of sessions.') })
    show()
    await userEvent.click(screen.getByRole('radio', { name: /^Copy/ }))
    expect(await screen.findByText('Podman makes no images of sessions.')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Copy' })).toBeDisabled()
  })
})
