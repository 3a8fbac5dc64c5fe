import { act, screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Connection } from '@/api/events'
import type { Warning } from '@/api/types.gen'
import { keys } from '@/api/keys'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeMachine } from '@/api/testing/session'
import { ConnectionBanner } from './ConnectionBanner'
import { MachineBanner } from './MachineBanner'
import { Shell } from './Shell'

const open: Connection = { state: 'open', heardAt: 1, lostAt: 0 }
const warning: Warning = {
  code: 'engine_connect_unavailable',
  title: 'Docker does not answer',
  text: 'New sessions wait.',
  at: '2026-01-01T00:00:00Z',
}

describe('ConnectionBanner', () => {
  afterEach(() => vi.useRealTimers())

  it('says nothing of a moment and speaks up when the silence lasts', async () => {
    vi.useFakeTimers()
    const { client } = renderView(<ConnectionBanner />)
    const now = Date.now()
    act(() => client.setQueryData<Connection>(keys.connection, { state: 'lost', heardAt: now, lostAt: now }))
    await act(() => vi.advanceTimersByTimeAsync(500))
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
    await act(() => vi.advanceTimersByTimeAsync(3000))
    expect(screen.getByRole('alert')).toHaveTextContent('Slipway is not responding')
    act(() => client.setQueryData<Connection>(keys.connection, open))
    await act(() => vi.advanceTimersByTimeAsync(50))
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
  })
})

describe('MachineBanner', () => {
  it('shows standing trouble until it is hidden, and again when it begins anew', async () => {
    const { client } = renderView(<MachineBanner />, { known: { machines: [makeMachine({ warnings: [warning] })] } })
    expect(screen.getByRole('alert')).toHaveTextContent('Docker does not answer New sessions wait.')
    await userEvent.click(screen.getByRole('button', { name: 'Hide' }))
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
    act(() =>
      client.setQueryData(keys.machines, [makeMachine({ warnings: [{ ...warning, at: '2026-01-01T01:00:00Z' }] })]),
    )
    expect(await screen.findByRole('alert')).toBeInTheDocument()
  })
  it('leads to the checks', async () => {
    const { where } = renderView(<MachineBanner />, { known: { machines: [makeMachine({ warnings: [warning] })] } })
    await userEvent.click(screen.getByRole('button', { name: 'Show checks' }))
    expect(where()).toBe('/settings')
  })
  it('offers the demo where there is no Docker, and not for other troubles', () => {
    renderView(<MachineBanner />, {
      known: { machines: [makeMachine({ warnings: [warning, { ...warning, code: 'engine_info_too-old' }] })] },
    })
    expect(screen.getAllByRole('button', { name: 'Try the demo' })).toHaveLength(1)
  })
  it('says since when an agent is silent', async () => {
    const { client } = renderView(<MachineBanner />, { known: { machines: [makeMachine({ online: false })] } })
    act(() => client.setQueryData<Connection>(keys.connection, open))
    expect(await screen.findByRole('alert')).toHaveTextContent('local is offline')
  })
})

describe('Shell', () => {
  it('says how to log in when the server does not know this browser', async () => {
    serve({ 'GET /api/v1/version': () => refusal(401, 'request_login_required', 'You are not logged in here.') })
    const { client } = renderView(<Shell />, { known: { sessions: [], machines: [] } })
    act(() => client.setQueryData<Connection>(keys.connection, { state: 'lost', heardAt: 0, lostAt: 5 }))
    expect(await screen.findByText('slipway login')).toBeInTheDocument()
    act(() => client.setQueryData<Connection>(keys.connection, open))
    expect(await screen.findByRole('link', { name: 'Sessions' })).toBeInTheDocument()
  })
})
