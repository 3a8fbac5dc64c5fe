import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import type { Operation } from '@/api/types.gen'
import { Works } from './Works'

const pull: Operation = {
  id: 'op1',
  kind: 'image-pull',
  subject: 'python:3.11',
  image: 'python:3.11',
  agent: 'lab',
  state: 'running',
  steps: [],
  startedAt: '2026-01-01T00:00:00Z',
  revision: 1,
}
const failed: Operation = {
  ...pull,
  id: 'op2',
  image: 'torch:2',
  state: 'failed',
  error: { code: 'engine_pull_unavailable', message: 'The registry went away.', hint: 'Pull it again.' },
}

describe('what goes on with images', () => {
  it('says how far a pull is and how long it takes, and cancels it', async () => {
    const sent = serve({ 'POST /api/v1/operations/op1/cancel': { ...pull, state: 'cancelled', revision: 2 } })
    const progress = { done: 256 * 1024 ** 2, total: 1024 ** 3, rate: 64 * 1024 ** 2, left: 12 }
    const steps = [{ name: 'pull', title: 'Pull', state: 'running' as const, detail: '4 of 9 layers' }]
    renderView(<Works agent="lab" onAgain={vi.fn()} />, {
      known: {
        operations: [
          { ...pull, progress, steps },
          { ...pull, id: 'op3', agent: 'desk', image: 'elsewhere:1' },
          { ...pull, id: 'op4', state: 'done', image: 'done:1' },
        ],
      },
    })
    expect(screen.getByRole('progressbar')).toHaveAttribute('aria-valuenow', '25')
    for (const text of [/256 MiB of 1 GiB/, /64 MiB\/s/, /12 s left/, /4 of 9 layers/])
      expect(screen.getByText(text)).toBeInTheDocument()
    expect(screen.queryByText(/elsewhere:1|done:1/)).toBeNull()
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    expect(sent.map((s) => s.path)).toEqual(['/api/v1/operations/op1/cancel'])
  })
  it('says why a pull failed, and offers to try it again until it is dismissed', async () => {
    const again = vi.fn()
    renderView(<Works agent="lab" onAgain={again} />, {
      known: { operations: [failed, { ...failed, id: 'op5', kind: 'image-remove', image: 'old:1' }] },
    })
    expect(screen.getAllByText('The registry went away.')).toHaveLength(2)
    await userEvent.click(screen.getByRole('button', { name: 'Try again' })) // only what is pulled can be
    expect(again).toHaveBeenCalledWith('torch:2')
    expect(screen.queryByText('torch:2')).toBeNull()
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss' }))
    expect(screen.queryByText('The registry went away.')).toBeNull()
  })
})
