import { screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { refusal, serve } from '@/api/testing/render'
import type { Folder } from '@/api/types.gen'
import { showFolders } from './testing/page'

const half = { files: 20, bytes: 512, ofFiles: 40, ofBytes: 1024 }
const folder: Folder = {
  id: 'f',
  name: 'corpus',
  agent: 'local',
  owner: 'me',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state: 'trashed',
  usedBy: [],
  createdAt: '2026-01-01T00:00:00Z',
}

/** Shows the trash with these folders in it, and returns what is sent. */
async function trash(folders: Folder[], answers: (list: { now: Folder[] }) => Parameters<typeof serve>[0]) {
  const list = { now: folders }
  const sent = serve({ 'GET /api/v1/folders': () => new Response(JSON.stringify(list.now)), ...answers(list) })
  showFolders({ agents: [] })
  await userEvent.click(await screen.findByRole('tab', { name: /Trash/ }))
  return sent
}

async function rowOf(name: string) {
  const row = (await screen.findByRole('button', { name })).closest<HTMLElement>('[data-row-key]')
  if (!row) throw new Error(`${name} is in no row`)
  return within(row)
}

// Without a size nothing is drawn of a list.
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600)
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1000)
})

describe('the trash', () => {
  it('says how far a folder is deleted and cancels that', async () => {
    const left: Folder = { ...folder, removed: half }
    const sent = await trash(
      [
        { ...left, state: 'deleting' },
        { ...folder, id: 'g', name: 'stuck', state: 'deleting', problem: 'It cannot be changed.' },
      ],
      (list) => ({
        'POST /api/v1/folders/f/stop': () => {
          list.now = [left]
          return new Response(JSON.stringify(left))
        },
      }),
    )
    const row = await rowOf('corpus')
    row.getByText('Deleting, 50 %')
    expect(row.queryByRole('button', { name: 'Restore' })).toBeNull()
    const stuck = await rowOf('stuck')
    await userEvent.hover(stuck.getByText('Deleting…'))
    await screen.findByText('It cannot be changed.')

    await userEvent.click(row.getByRole('button', { name: 'Cancel: corpus' }))
    await screen.findByText('The remaining files of corpus are in the trash.')
    expect(sent.some((s) => s.method === 'POST' && s.path === '/api/v1/folders/f/stop')).toBe(true)
    await userEvent.hover(await screen.findByText('Partly deleted'))
    await screen.findByText(/20 of 40 files deleted: 512 B\. Only the rest can be restored/)
  })

  it('says so where it was too late', async () => {
    await trash([{ ...folder, state: 'deleting' }], (list) => ({
      'POST /api/v1/folders/f/stop': () => {
        list.now = []
        return refusal(404, 'folder_read_not-found', 'There is no folder f.')
      },
    }))
    await userEvent.click((await rowOf('corpus')).getByRole('button', { name: 'Cancel: corpus' }))
    await screen.findByText(/There is no folder f\./)
    await screen.findByText('The trash is empty.')
  })

  it('restores what is left, and says that it is not all', async () => {
    await trash([{ ...folder, removed: { ...half, ofFiles: 0, ofBytes: 0 } }], () => ({
      'POST /api/v1/folders/f/restore': { ...folder, state: 'ready' },
    }))
    const row = await rowOf('corpus')
    row.getByText('Partly deleted')
    await userEvent.click(row.getByRole('button', { name: 'Restore' }))
    await screen.findByText('Restored the remaining files of corpus.')
  })
})

describe('the cache', () => {
  const cache: Folder = { ...folder, name: '.cache', auto: true, state: 'ready' }
  const show = (folders: Folder[], answers: Parameters<typeof serve>[0] = {}) => {
    const sent = serve({ 'GET /api/v1/folders': folders, ...answers })
    showFolders({ agents: [] })
    return sent
  }

  it('is emptied after a question', async () => {
    const usage = { bytes: 2048, files: 2, at: '2026-01-01T00:00:00Z' }
    const sent = show([{ ...cache, usage, usedBy: [{ session: 's', name: 'train' }] }], {
      'GET /api/v1/folders/f/files': { path: '/', entries: [{ name: 'pip' }, { name: 'x', encoded: '%FF' }] },
      'DELETE /api/v1/folders/f/files': null,
    })
    await userEvent.click((await rowOf('.cache')).getByRole('button', { name: 'Empty: .cache' }))
    await screen.findByText(/^In use by train/)
    expect(sent.some((s) => s.method === 'DELETE')).toBe(false)
    await userEvent.click(screen.getByRole('button', { name: /^Delete 2/ }))
    await vi.waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    expect(sent.filter((s) => s.method === 'DELETE')).toHaveLength(2)
  })

  it('is no directory of the machine, nor another folder', async () => {
    show([
      { ...cache, path: '/home/me/.cache' },
      { ...folder, id: 'g', name: 'data', state: 'ready' },
    ])
    expect((await rowOf('data')).queryByRole('button', { name: /^Empty/ })).toBeNull()
    expect((await rowOf('.cache')).queryByRole('button', { name: /^Empty/ })).toBeNull()
  })
})
