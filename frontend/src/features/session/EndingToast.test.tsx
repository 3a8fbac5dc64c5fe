import { act, screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { EndingToast } from './EndingToast'

afterEach(() => void vi.useRealTimers())

const ending = (id: string, seconds: number) =>
  makeSession({ id, name: id, ending: { at: new Date(Date.now() + seconds * 1000).toISOString() } })

describe('EndingToast', () => {
  it('counts down to the first end, and undoes all of them', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] })
    const { actions } = renderView(<EndingToast />, {
      known: { sessions: [ending('one', 10), ending('two', 6), makeSession()] },
    })
    expect(screen.getByText('2 sessions are terminated in 6 s')).toBeInTheDocument()
    expect(screen.getByRole('status')).toHaveTextContent('2 sessions are about to be terminated')
    act(() => void vi.advanceTimersByTime(2000))
    expect(screen.getByText('2 sessions are terminated in 4 s')).toBeInTheDocument()
    vi.useRealTimers()
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }))
    expect(actions.undoTerminate).toHaveBeenCalledWith(['two', 'one'])
    await userEvent.click(screen.getByRole('button', { name: 'Terminate now' }))
    expect(actions.terminateNow).toHaveBeenCalledWith(['two', 'one'])
  })
  it('names a single one, and offers nothing when it is too late', () => {
    const one = renderView(<EndingToast />, { known: { sessions: [ending('one', 9)] } })
    expect(screen.getByText('one is terminated in 9 s')).toBeInTheDocument()
    one.unmount()
    renderView(<EndingToast />, { known: { sessions: [ending('late', 0)] } })
    expect(screen.getAllByText('late is about to be terminated')[0]).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Undo' })).toBeDisabled()
  })
  it('says which was not terminated and why, until it is dismissed', async () => {
    const error = { code: 'agent_call_unavailable', message: 'lab is not reached.', hint: 'Reconnect it.', fields: [] }
    const failed = makeSession({
      id: 'f',
      name: 'train-a',
      ending: { at: '2026-01-02T00:00:00Z', error: error as never },
    })
    const { actions } = renderView(<EndingToast />, { known: { sessions: [failed] } })
    expect(screen.getByRole('alert')).toHaveTextContent('train-a was not terminated. lab is not reached. Reconnect it.')
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }))
    expect(actions.terminateNow).toHaveBeenCalledWith(['f'])
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss' }))
    expect(actions.undoTerminate).toHaveBeenCalledWith(['f'])
  })
})
