import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import type { Accelerator, Recent } from '@/api/types.gen'
import { RecentsModal } from './RecentsModal'

const recent = (id: string, change: Partial<Recent> = {}): Recent => ({
  id,
  name: `name-${id}`,
  pinned: false,
  spec: { image: 'python:3.12', resources: { cpu: 2, memory: 4 * 1024 ** 3 } },
  count: 1,
  launchedAt: '2026-01-01T00:00:00Z',
  ...change,
})
const known = { recents: [recent('a', { launchedAt: '2026-01-03T00:00:00Z' }), recent('b', { pinned: true })] }

describe('RecentsModal', () => {
  it('puts pinned entries first and uses the one that is chosen', async () => {
    const onUse = vi.fn()
    renderView(<RecentsModal onClose={vi.fn()} onUse={onUse} />, { known })
    expect(screen.getAllByText(/^name-/).map((e) => e.textContent)).toEqual(['name-b', 'name-a'])
    expect(screen.getAllByText('2 CPU · 4 GiB')).toHaveLength(2)
    await userEvent.click(screen.getByText('name-a'))
    expect(onUse).toHaveBeenCalledWith('a')
  })
  it('says what devices were asked for', () => {
    const spec = (accelerator: Accelerator) => ({ image: 'a:1', resources: { cpu: 1 }, accelerator })
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, {
      known: {
        recents: [
          recent('a', { spec: spec({ shares: 500 }) }),
          recent('b', { spec: spec({ memory: 12 * 1024 ** 3 }) }),
        ],
      },
    })
    expect(screen.getByText('1 CPU · 0.5 GPU')).toBeInTheDocument()
    expect(screen.getByText('1 CPU · vram:12g')).toBeInTheDocument()
  })
  it('says how many there were, of kernels and of sessions, and nothing where there was one', async () => {
    const spec = { image: 'a:1', resources: { cpu: 1 }, cluster: 3 }
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, {
      known: { recents: [recent('a', { spec }), recent('b', { count: 4 }), recent('c')] },
    })
    expect([
      screen.getByLabelText('3 containers on a private network').textContent,
      screen.getByLabelText('4 sessions at once').textContent,
    ]).toEqual(['×3', '×4'])
    expect(screen.getAllByText(/^×/)).toHaveLength(2)
    await userEvent.hover(screen.getByText('×4'))
    expect(await screen.findByRole('tooltip')).toHaveTextContent('4 sessions at once')
  })
  it('leaves a name alone when renaming is given up', async () => {
    const sent = serve({})
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Rename name-a' }))
    await userEvent.type(screen.getByRole('textbox'), 'x{Escape}')
    expect(await screen.findByText('name-a')).toBeInTheDocument()
    expect(sent).toHaveLength(0)
  })
  it('renames in place', async () => {
    const sent = serve({
      'PATCH /api/v1/recents/a': recent('a', { name: 'nightly' }),
      'GET /api/v1/recents': [recent('a', { name: 'nightly' }), recent('b', { pinned: true })],
    })
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Rename name-a' }))
    await userEvent.clear(screen.getByRole('textbox'))
    await userEvent.type(screen.getByRole('textbox'), 'nightly{Enter}')
    expect(await screen.findByText('nightly')).toBeInTheDocument()
    expect(sent[0]).toEqual({ method: 'PATCH', path: '/api/v1/recents/a', body: { name: 'nightly' } })
  })
  it('takes a pin back and says why when it is refused', async () => {
    serve({
      'PATCH /api/v1/recents/a': () => refusal(500, 'settings_update_failed', 'The disk is full.'),
      'GET /api/v1/recents': known.recents,
    })
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Pin name-a' }))
    expect(await screen.findByText(/The disk is full/)).toBeInTheDocument()
    await waitFor(() =>
      expect(screen.getByRole('button', { name: 'Pin name-a' })).toHaveAttribute('aria-pressed', 'false'),
    )
  })
  it('forgets an entry', async () => {
    const sent = serve({
      'DELETE /api/v1/recents/a': () => new Response(null, { status: 204 }),
      'GET /api/v1/recents': [recent('b', { pinned: true })],
    })
    renderView(<RecentsModal onClose={vi.fn()} onUse={vi.fn()} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Remove name-a' }))
    await waitFor(() => expect(screen.queryByText('name-a')).not.toBeInTheDocument())
    expect(sent[0]?.method).toBe('DELETE')
  })
})
