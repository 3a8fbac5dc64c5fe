import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { RecentProject, Session } from '@/api/types.gen'
import { ProjectNotice } from './ProjectNotice'

const project: RecentProject = {
  id: 'a',
  name: 'paper',
  agent: 'local',
  folder: 'f',
  path: 'notebooks',
  image: 'paper:1',
  pinned: false,
  openedAt: '2026-01-01T00:00:00Z',
}
const session = (change: Partial<Session> = {}) =>
  makeSession({
    id: 's',
    spec: { image: 'paper:1', resources: {} },
    folders: [{ folder: 'f', name: 'paper', target: '/home/work/paper' }],
    ...change,
  })

function show(image: string, of = session()) {
  const sent = serve({ 'POST /api/v1/folders/f/project': { image } })
  return { sent, ...renderView(<ProjectNotice session={of} />, { known: { projects: [project] } }) }
}

describe('the notice of a changed project', () => {
  it('leads to its dialog', async () => {
    const { sent, where } = show('paper:2')
    await screen.findByText('The project paper has changed since the image of this session was built.')
    expect(sent[0]?.body).toEqual({ path: 'notebooks', file: '', environment: '' })
    await userEvent.click(screen.getByRole('button', { name: 'Rebuild…' }))
    expect(where()).toBe('/folders?reopen=a')
  })

  it('is not there while the project gives the same image', async () => {
    const { sent } = show('paper:1')
    await waitFor(() => expect(sent).toHaveLength(1))
    expect(screen.queryByRole('status')).toBeNull()
  })

  it('is not asked about for sessions that have ended, or have another image or folder', () => {
    for (const of of [
      session({ status: 'TERMINATED' }),
      session({ spec: { image: 'other:1', resources: {} } }),
      session({ folders: [] }),
    ])
      expect(show('paper:2', of).sent).toEqual([])
  })
})
