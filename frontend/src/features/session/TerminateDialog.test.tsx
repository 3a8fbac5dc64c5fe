import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { Loss } from '@/api/types.gen'
import { TerminateDialog } from './TerminateDialog'

const one = makeSession({ id: 'one', name: 'train-a' })
const two = makeSession({ id: 'two', name: 'sweep-b', owner: 'bob', agent: 'lab' })
const known = { sessions: [one, two] }
const ended = { ...one, status: 'TERMINATING', revision: 2 }
const nothing: Loss = { files: [], count: 0, unknown: false, cancels: [] }
const losses = { 'GET /api/v1/sessions/one/loss': nothing, 'GET /api/v1/sessions/two/loss': nothing }
const posts = (sent: ReturnType<typeof serve>) => sent.filter(({ method }) => method === 'POST')

describe('TerminateDialog', () => {
  it('ends a session so that it can be undone, and closes', async () => {
    const sent = serve({ ...losses, 'POST /api/v1/sessions/one/terminate': ended })
    const onClose = vi.fn()
    renderView(<TerminateDialog ids={['one']} onClose={onClose} />, { known })
    expect(screen.getByText('Terminate train-a?')).toBeInTheDocument()
    expect(screen.getByText('You can undo this for 10 s.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Terminate' }))
    await waitFor(() => expect(onClose).toHaveBeenCalled())
    expect(posts(sent)).toEqual([{ method: 'POST', path: '/api/v1/sessions/one/terminate', body: { undo: true } }])
  })
  it('warns before it does so by force, at once', async () => {
    const sent = serve({ ...losses, 'POST /api/v1/sessions/one/terminate': ended })
    renderView(<TerminateDialog ids={['one']} onClose={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('checkbox', { name: 'Force' }))
    expect(screen.getByText(/Processes get no time to save/)).toBeInTheDocument()
    expect(screen.getByText('This happens at once and cannot be undone.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Force-terminate' }))
    await waitFor(() => expect(posts(sent)[0]?.body).toEqual({ forced: true }))
  })
  it('stops it and keeps what continues it', async () => {
    const sent = serve({ ...losses, 'POST /api/v1/sessions/one/park': ended })
    const onClose = vi.fn()
    renderView(<TerminateDialog ids={['one']} onClose={onClose} />, { known })
    await userEvent.click(screen.getByRole('checkbox', { name: 'Keep it to continue later' }))
    expect(screen.getByText(/^Stop and keep .+\?$/)).toBeInTheDocument()
    expect(screen.getByText(/Its home directory stays as a folder/)).toBeInTheDocument()
    expect(screen.getByRole('checkbox', { name: 'Force' })).toBeDisabled()
    await userEvent.click(screen.getByRole('button', { name: 'Stop and keep' }))
    await waitFor(() => expect(onClose).toHaveBeenCalled())
    expect(posts(sent)).toEqual([{ method: 'POST', path: '/api/v1/sessions/one/park' }])
  })
  it('offers that only for what can be continued', () => {
    serve(losses)
    const batch = makeSession({ id: 'two', type: 'batch' })
    renderView(<TerminateDialog ids={['one', 'two']} onClose={vi.fn()} />, { known: { sessions: [one, batch] } })
    expect(screen.queryByRole('checkbox', { name: /^Keep it/ })).not.toBeInTheDocument()
  })
  it('names every session with owner, machine, what its home loses and what is cancelled', async () => {
    const many = Array.from({ length: 22 }, (_, i) => makeSession({ id: `m${i}`, name: `many-${i}` }))
    const after = [
      { id: 'two', name: 'sweep-b' },
      { id: 'eval', name: 'eval-c' },
      { id: 'rep', name: 'report-d' },
    ]
    serve({
      'GET /api/v1/sessions/one/loss': { files: ['a.txt', 'b', 'c', 'd'], count: 4, unknown: false, cancels: after },
      'GET /api/v1/sessions/two/loss': { ...nothing, unknown: true },
    })
    renderView(<TerminateDialog ids={['one', 'two', ...many.map((s) => s.id)]} onClose={vi.fn()} />, {
      known: { sessions: [one, two, ...many] },
    })
    expect(screen.getByText('Terminate 24 sessions?')).toBeInTheDocument()
    const lines = within(screen.getByRole('list', { name: 'Sessions to terminate' })).getAllByRole('listitem')
    expect(lines).toHaveLength(24)
    expect(lines[1]).toHaveTextContent('sweep-bbob · lab')
    expect(lines[23]).toHaveTextContent('many-21me · local')
    expect(
      await within(lines[0] as HTMLElement).findByText('Deletes 4 entries of its home: a.txt, b, c, …'),
    ).toBeVisible()
    expect(lines[0]).toHaveTextContent('Cancels 2 sessions that start after it: eval-c, report-d')
    expect(lines[1]).toHaveTextContent('Its home cannot be listed. What is in it is deleted.')
  })
  it('ends the others when one refuses, and stays with what is left', async () => {
    const sent = serve({
      ...losses,
      'POST /api/v1/sessions/one/terminate': () =>
        refusal(409, 'session_update_conflict', 'It is being committed.', 'Wait a moment.'),
      'POST /api/v1/sessions/two/terminate': { ...two, status: 'TERMINATING', revision: 2 },
    })
    const onClose = vi.fn()
    renderView(<TerminateDialog ids={['one', 'two']} onClose={onClose} />, { known })
    expect(screen.getByText('Terminate 2 sessions?')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Terminate' }))
    expect(await screen.findByText('train-a: It is being committed. Wait a moment.')).toBeInTheDocument()
    expect(screen.getByText('Terminate train-a?')).toBeInTheDocument()
    expect(posts(sent)).toHaveLength(2)
    expect(onClose).not.toHaveBeenCalled()
  })
})

describe('TerminateDialog of a session that becomes an image', () => {
  it('says so, and that force makes none', async () => {
    const three = makeSession({
      id: 'three',
      name: 'work',
      startedAt: '2026-05-01T08:00:00Z',
      spec: { ...one.spec, commitOnEnd: 2 },
    })
    serve({ 'GET /api/v1/sessions/three/loss': nothing })
    renderView(<TerminateDialog ids={['three']} onClose={vi.fn()} />, { known: { sessions: [three] } })
    expect(screen.getByText(/Its changes are saved as an image first/)).toBeInTheDocument()
    await userEvent.click(screen.getByRole('checkbox', { name: 'Force' }))
    expect(screen.getByText('Its changes are not saved as an image.')).toBeInTheDocument()
  })
})

describe('TerminateDialog of a session whose home is kept', () => {
  const home = { folder: 'f', name: 'notes', target: '/home/work' }
  const kept = makeSession({ id: 'kept', name: 'keeper', folders: [home] })
  it('does not say that the home is deleted', () => {
    renderView(<TerminateDialog ids={['kept']} onClose={vi.fn()} />, { known: { sessions: [kept] } })
    expect(screen.getByText(/Its home directory stays as the folder notes/)).toBeInTheDocument()
    expect(screen.queryByText(/delete/)).toBeNull()
  })
  it('says of several how many homes are deleted', () => {
    const known = { sessions: [one, two, kept] }
    renderView(<TerminateDialog ids={['one', 'two', 'kept']} onClose={vi.fn()} />, { known })
    expect(screen.getByText(/The home directories of 2 of them are deleted/)).toBeInTheDocument()
  })
})
