import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { TerminateDialog } from './TerminateDialog'

const one = makeSession({ id: 'one', name: 'train-a' })
const two = makeSession({ id: 'two', name: 'sweep-b' })
const known = { sessions: [one, two] }

describe('TerminateDialog', () => {
  it('ends a session as asked and closes', async () => {
    const sent = serve({ 'POST /api/v1/sessions/one/terminate': { ...one, status: 'TERMINATING', revision: 2 } })
    const onClose = vi.fn()
    renderView(<TerminateDialog ids={['one']} onClose={onClose} />, { known })
    expect(screen.getByText('Terminate train-a?')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Terminate' }))
    await waitFor(() => expect(onClose).toHaveBeenCalled())
    expect(sent).toEqual([{ method: 'POST', path: '/api/v1/sessions/one/terminate', body: { forced: false } }])
  })
  it('warns before it does so by force', async () => {
    const sent = serve({ 'POST /api/v1/sessions/one/terminate': { ...one, status: 'TERMINATING', revision: 2 } })
    renderView(<TerminateDialog ids={['one']} onClose={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('checkbox', { name: 'Force' }))
    expect(screen.getByText(/Processes get no time to save/)).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Force-terminate' }))
    await waitFor(() => expect(sent[0]?.body).toEqual({ forced: true }))
  })
  it('ends the others when one refuses, and stays with what is left', async () => {
    const sent = serve({
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
    expect(sent).toHaveLength(2)
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
