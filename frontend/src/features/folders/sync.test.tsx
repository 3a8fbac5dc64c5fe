import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { serve } from '@/api/testing/render'
import { makeAgent } from '@/api/testing/session'
import type { Folder, Operation } from '@/api/types.gen'
import { showFolders } from './testing/page'

const folder = (id: string, agent: string, name = 'paper'): Folder => ({
  id,
  name,
  agent,
  owner: 'me',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state: 'ready',
  usedBy: [],
  createdAt: '2026-01-01T00:00:00Z',
})

const asking: Operation = {
  id: 'o',
  kind: 'file-sync',
  subject: 'paper',
  agent: 'lab',
  state: 'waiting',
  steps: [{ name: 'compare', title: 'Compare both sides', state: 'running' }],
  prompt: {
    id: 'p',
    kind: 'keep',
    text: '"a.txt" changed on both sides.',
    secret: false,
    again: false,
    sides: ['local', 'lab'],
    remaining: 2,
  },
  startedAt: '2026-01-01T00:00:00Z',
  revision: 1,
}

// Without a size nothing is drawn of a list.
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600)
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1000)
})

const press = async (name: string | RegExp) => userEvent.click(await screen.findByRole('button', { name }))

describe('syncing two folders', () => {
  it('suggests the folder of the same name, and answers for all what to keep', async () => {
    const sent = serve({
      'GET /api/v1/folders': [folder('f', 'local', 'paper'), folder('x', 'lab', 'other'), folder('g', 'lab', 'paper')],
      'GET /api/v1/projects': [],
      'POST /api/v1/files/sync': asking,
      'POST /api/v1/operations/o/answer': { ...asking, prompt: undefined, state: 'running', revision: 2 },
    })
    showFolders({
      agents: [makeAgent({ name: 'local', local: true }), makeAgent({ name: 'lab', local: false })],
      machines: [],
      operations: [],
      projects: [],
    })
    const [first] = await screen.findAllByRole('button', { name: 'Sync with…: paper' })
    if (first) await userEvent.click(first)
    expect(await screen.findByText('paper @ lab')).toBeVisible()
    await userEvent.click(screen.getByRole('checkbox', { name: 'Include files that .gitignore excludes' }))
    await press('Sync')
    expect(sent.find((s) => s.path === '/api/v1/files/sync')?.body).toEqual({
      this: { folder: 'f' },
      that: { folder: 'g' },
      ignored: true,
    })
    expect(await screen.findByText('"a.txt" changed on both sides.')).toBeVisible()
    expect(screen.getByRole('button', { name: "Keep local's" })).toBeEnabled()
    await userEvent.click(screen.getByRole('checkbox', { name: 'Also for 2 more files' }))
    await press("Keep lab's")
    await waitFor(() =>
      expect(sent.find((s) => s.path === '/api/v1/operations/o/answer')?.body).toEqual({
        prompt: 'p',
        text: 'that all',
      }),
    )
  })
})
