import { screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent } from '@/api/testing/session'
import type { Folder, Machine, Project, RecentProject } from '@/api/types.gen'
import { FoldersPage } from '../FoldersPage'
import type { Dropped } from '../opening'

export const folder = (id: string, agent: string, change: Partial<Folder> = {}): Folder => ({
  id,
  name: 'paper',
  agent,
  owner: 'me',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state: 'ready',
  usedBy: [],
  createdAt: '2026-01-01T00:00:00Z',
  ...change,
})
export const known = (id: string, change: Partial<RecentProject> = {}): RecentProject => ({
  id,
  name: 'paper',
  agent: 'local',
  folder: 'f',
  pinned: false,
  openedAt: '2026-01-01T00:00:00Z',
  ...change,
})
export const found: Project = {
  kind: 'packages',
  file: 'requirements.txt',
  files: ['requirements.txt', 'Dockerfile'],
  image: 'new:1',
  present: false,
  dockerfile: 'FROM lab:1',
  generated: true,
  bases: ['lab:1'],
}
const agents = [makeAgent({ name: 'local', local: true }), makeAgent({ name: 'lab', local: false })]

export function show(
  projects: RecentProject[],
  folders: Folder[],
  answers: Parameters<typeof serve>[0] = {},
  reopen = '',
  dropped: Dropped | null = null,
  machines: Machine[] = [],
) {
  const sent = serve({
    'GET /api/v1/folders': folders,
    'GET /api/v1/environments': [],
    'GET /api/v1/projects': projects,
    'POST /api/v1/folders/f/project': found,
    'POST /api/v1/folders/f/project/open': projects[0],
    'POST /api/v1/folders/g/project': found,
    'POST /api/v1/folders/g/project/open': projects[0],
    ...answers,
  })
  const onLaunch = vi.fn(() => Promise.resolve())
  const onReopened = vi.fn()
  function Page() {
    const [drop, setDrop] = useState(dropped)
    return (
      <FoldersPage
        project=""
        reopen={reopen}
        dropped={drop}
        onDropTaken={() => setDrop(null)}
        onReopened={onReopened}
        onOpen={vi.fn()}
        onLaunch={onLaunch}
      />
    )
  }
  renderView(<Page />, { known: { agents, projects, machines, operations: [] } })
  const bodies = (path: string) => sent.filter((s) => s.path === `/api/v1/${path}`).map((s) => s.body)
  return { sent, bodies, onLaunch, onReopened }
}

/** Opens the dialog, and returns the rows of its list. */
export async function rows() {
  await userEvent.click(await screen.findByRole('button', { name: 'Open a project…' }))
  const list = await screen.findByRole('region', { name: 'Recent projects' })
  return within(list).findAllByRole('listitem')
}

export const press = async (name: string | RegExp) => userEvent.click(await screen.findByRole('button', { name }))
