import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import type { Operation } from '@/api/types.gen'
import { Operations } from './Operations'

const sending: Operation = {
  id: 'op1',
  kind: 'image-send',
  subject: 'lab',
  state: 'running',
  startedAt: '2026-01-02T03:04:05Z',
  revision: 1,
  steps: [{ name: 'upload', title: 'Send the layers', state: 'running' }],
  progress: { done: 1048576, total: 4194304, rate: 0 },
}

describe('operations in the drawer', () => {
  it('show how far they are and are cancelled', async () => {
    const sent = serve({ 'POST /api/v1/operations/op1/cancel': { ...sending, state: 'cancelled', revision: 2 } })
    renderView(<Operations />, { known: { operations: [sending] } })
    expect(screen.getByText('1 MiB of 4 MiB')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: /Send an image to lab/ }))
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    await waitFor(() => expect(sent.map((s) => s.path)).toContain('/api/v1/operations/op1/cancel'))
    expect(await screen.findAllByText('cancelled')).not.toHaveLength(0)
  })
  it('that ask something show the question at once', () => {
    renderView(<Operations />, {
      known: {
        operations: [
          {
            ...sending,
            state: 'waiting',
            prompt: { id: 'p', kind: 'confirm', text: 'Go on?', secret: false, again: false },
          },
        ],
      },
    })
    expect(screen.getByRole('button', { name: 'Yes' })).toBeInTheDocument()
  })
})
