import { afterEach, describe, expect, it, vi } from 'vitest'
import { ApiProblem } from '@/api/client'
import type { FileInfo } from '@/api/types.gen'
import { pickedOf } from './picked'
import { Uploads, type UploadItem, type UploadServer } from './uploads'

const there = new Set<string>()
const directories = new Set<string>()
const made: string[] = []
const finished: { path: string; conflict: string }[] = []
const dropped: string[] = []

const fileAt = (path: string): FileInfo => ({
  name: path,
  kind: directories.has(path) ? 'directory' : 'file',
  size: 5,
  modified: '2026-01-01T00:00:00Z',
  mode: '644',
  version: 'v1',
})

/** A server in memory. Modules are shared between the files of tests, so nothing is put in the place of one. */
const server: UploadServer = {
  statFile: (_place, path) =>
    there.has(path)
      ? Promise.resolve(fileAt(path))
      : Promise.reject(new ApiProblem({ code: 'file_use_not-found', message: '' }, 404)),
  makeDirectory: (_place, path) => Promise.resolve(void made.push(path)),
  uploadState: () => Promise.resolve({ offset: 0 }),
  writePiece: (_place, _path, _key, from, piece) => Promise.resolve({ offset: from + piece.size }),
  finishUpload: (_place, path, _key, { conflict }) => {
    finished.push({ path, conflict })
    return Promise.resolve(fileAt(path))
  },
  dropUpload: (_place, path) => Promise.resolve(void dropped.push(path)),
}

afterEach(async () => {
  // What goes on of an upload that was cancelled comes to its end, and not into the next test.
  await new Promise((done) => setTimeout(done))
  there.clear()
  directories.clear()
  finished.length = dropped.length = made.length = 0
})

const files = (...list: string[]) =>
  list.map((name) => ({ file: new File(['x'], name, { lastModified: 1 }), dirs: [] }))
const statuses = (uploads: Uploads) => uploads.items().map((item) => `${item.name} ${item.status}`)
const asking = (uploads: Uploads) => uploads.items().find((item) => item.status === 'asking') as UploadItem

describe('uploads', () => {
  it('ask once where the answer is for all, also for what is found later', async () => {
    const uploads = new Uploads(server)
    for (const name of ['a', 'b', 'c', 'd', 'e']) there.add(name)
    uploads.add({ folder: 'f' }, '', files('a', 'b', 'c', 'd', 'e', 'new'))
    expect(uploads.several(uploads.items()[0] as UploadItem)).toBe(true)
    await vi.waitFor(() => expect(asking(uploads)).toBeDefined())
    uploads.answer(asking(uploads).id, 'keep-both', true)
    await vi.waitFor(() =>
      expect(statuses(uploads)).toEqual(['a done', 'b done', 'c done', 'd done', 'e done', 'new done']),
    )
    expect(finished.filter((f) => f.conflict === 'keep-both').map((f) => f.path)).toEqual(['a', 'b', 'c', 'd', 'e'])

    uploads.add({ folder: 'f' }, '', files('a'))
    await vi.waitFor(() => expect(asking(uploads).name).toBe('a')) // another batch, another question
    expect(uploads.several(asking(uploads))).toBe(false)
    uploads.answer(asking(uploads).id, 'skip', false)
    expect(statuses(uploads).at(-1)).toBe('a skipped')
    expect(dropped).toEqual(['a'])
  })

  it('leave out what is answered so for one, and ask for the next', async () => {
    const uploads = new Uploads(server)
    there.add('a').add('b')
    uploads.add({ folder: 'f' }, '', files('a', 'b'))
    await vi.waitFor(() => expect(statuses(uploads)).toEqual(['a asking', 'b asking']))
    uploads.answer(asking(uploads).id, 'skip', false)
    expect(statuses(uploads)).toEqual(['a skipped', 'b asking'])
    uploads.answer(asking(uploads).id, 'replace', false)
    await vi.waitFor(() => expect(statuses(uploads)).toEqual(['a skipped', 'b done']))
    expect(finished).toEqual([{ path: 'b', conflict: 'replace' }])
  })

  it('are forgotten by the server when they are cancelled', async () => {
    const uploads = new Uploads(server)
    there.add('a')
    uploads.add({ folder: 'f' }, 'dir', files('b'))
    uploads.cancel(uploads.items()[0]?.id ?? 0)
    await vi.waitFor(() => expect(dropped).toEqual(['dir%2Fb']))
    expect(statuses(uploads)).toEqual(['b cancelled'])
    expect(finished).toEqual([])
  })

  it('say what has the name, and never replace a directory for an answer about files', async () => {
    const uploads = new Uploads(server)
    there.add('a').add('b')
    directories.add('b')
    uploads.add({ folder: 'f' }, '', files('a', 'b'))
    await vi.waitFor(() => expect(statuses(uploads)).toEqual(['a asking', 'b asking']))
    expect(asking(uploads)).toMatchObject({
      size: 1,
      modified: '1970-01-01T00:00:00.001Z',
      there: { size: 5, modified: '2026-01-01T00:00:00Z' },
    })
    uploads.answer(asking(uploads).id, 'replace', true)
    await vi.waitFor(() => expect(statuses(uploads)).toEqual(['a done', 'b asking']))
    uploads.answer(asking(uploads).id, 'skip', false)
    expect(statuses(uploads)).toEqual(['a done', 'b skipped'])
  })

  it('bring a tree with the directories in it that hold nothing', async () => {
    const item = (entry: unknown) => ({ webkitGetAsEntry: () => entry })
    const file = (name: string) => ({
      isFile: true,
      name,
      file: (take: (file: File) => void) => take(new File(['x'], name, { lastModified: 1 })),
    })
    const directory = (name: string, ...inner: unknown[]) => {
      const parts = [inner, []] // a reader gives some at a time
      return {
        isFile: false,
        name,
        createReader: () => ({ readEntries: (take: (some: unknown[]) => void) => take(parts.shift() ?? []) }),
      }
    }
    const tree = directory('top', file('one'), directory('hollow', directory('deep')), directory('full', file('two')))
    const picked = await pickedOf({ items: [item(tree)], files: [] } as unknown as DataTransfer)
    const uploads = new Uploads(server)
    uploads.add({ folder: 'f' }, 'here', picked)
    await vi.waitFor(() => expect(statuses(uploads)).toEqual(['one done', 'deep done', 'two done']))
    expect(finished.map((f) => f.path)).toEqual(['here%2Ftop%2Fone', 'here%2Ftop%2Ffull%2Ftwo'])
    expect(made).toContain('here%2Ftop%2Fhollow%2Fdeep')
  })
})
