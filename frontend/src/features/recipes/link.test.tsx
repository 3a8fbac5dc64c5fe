import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { LinkPage } from './LinkPage'

const spec = { image: 'python:3.12', command: 'rm -rf /', resources: { cpu: 2 } }

function show() {
  const act = { onLeave: vi.fn(), onReview: vi.fn(), onOpen: vi.fn(), onProject: vi.fn() }
  renderView(<LinkPage url="slipway://x" {...act} />)
  return act
}

describe('LinkPage', () => {
  it('shows every field of what is to be launched, and asks', async () => {
    const sent = serve({
      'POST /api/v1/links/read': { kind: 'run', spec },
      'POST /api/v1/recipes/compare': [
        { field: 'image', left: 'python:3.12', right: '', same: false },
        { field: 'command', left: 'rm -rf /', right: '', same: false },
      ],
    })
    const act = show()
    expect(await screen.findByText('rm -rf /')).toBeInTheDocument()
    expect(screen.getByText(/Check the command/)).toBeInTheDocument()
    expect(act.onReview).not.toHaveBeenCalled()
    await userEvent.click(screen.getByRole('button', { name: 'Review in the launcher' }))
    expect(act.onReview).toHaveBeenCalledWith(spec)
    expect(sent.map((s) => s.path)).toEqual(['/api/v1/links/read', '/api/v1/recipes/compare'])
  })
  it('does nothing when it is declined', async () => {
    serve({
      'POST /api/v1/links/read': { kind: 'open', session: 'a' },
      'GET /api/v1/sessions/a': makeSession({ id: 'a', name: 'train' }),
    })
    const act = show()
    expect(await screen.findByText('train')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    expect(act.onLeave).toHaveBeenCalled()
    expect(act.onOpen).not.toHaveBeenCalled()
  })
  it('shows the address of a project, and goes on when it may', async () => {
    serve({ 'POST /api/v1/links/read': { kind: 'project', project: 'https://example.com/a.git#b' } })
    const act = show()
    expect(await screen.findByText('https://example.com/a.git#b')).toBeInTheDocument()
    expect(act.onProject).not.toHaveBeenCalled()
    await userEvent.click(screen.getByRole('button', { name: 'Continue' }))
    expect(act.onProject).toHaveBeenCalledWith('https://example.com/a.git#b')
  })
  it('says what is wrong with a link', async () => {
    serve({ 'POST /api/v1/links/read': () => refusal(422, 'recipe_parse_invalid', 'The link names no image.') })
    show()
    expect(await screen.findByText('The link names no image.')).toBeInTheDocument()
  })
})
