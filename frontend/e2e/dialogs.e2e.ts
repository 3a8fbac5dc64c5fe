import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Folder, Image, Operation, Preset, Session, Settings } from '@/api/types.gen'
import { Browser } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { enter, row } from './launcherPage'
import { DemoProgram } from './program'

// "Every dialog's cancel leaves everything as it was": each is opened, written into where it takes something, and left.
const program = new DemoProgram('workstation')
const browser = new Browser()
let session: Session
let folder: Folder
let thrown: Folder

stage(program, browser, {
  prepare: async () => {
    await program.endAll() // what a story launched changes by itself
    const dir = join(program.disk, 'scratch', 'kept')
    mkdirSync(dir)
    writeFileSync(join(dir, 'kept.txt'), 'kept')
    folder = await program.call<Folder>('POST', '/folders', { name: 'kept-folder', path: '/scratch/kept' })
    thrown = await program.call<Folder>('POST', '/folders', { name: 'thrown-away' })
    await program.call('POST', `/folders/${thrown.id}/trash`)
    await program.call('POST', '/presets', { name: 'kept preset', resources: { cpu: 3, memory: 1024 ** 3 } })
    session = await program.running({ name: 'kept-session', image: 'python:3.12' })
  },
})

/** Everything that a dialog could have changed, without what changes by itself. */
async function everything() {
  const all = <T>(path: string) => program.call<T>('GET', path)
  const [sessions, folders, images, presets, recents, settings, agents, operations, files] = await Promise.all([
    program.sessions(),
    all<Folder[]>('/folders'),
    all<Image[]>('/images'),
    all<Preset[]>('/presets'),
    program.recents(),
    all<Settings>('/settings'),
    program.agents(),
    all<Operation[]>('/operations'),
    all<{ entries: { name: string; version: string }[] }>(`/folders/${folder.id}/files?path=`),
  ])
  return {
    sessions: sessions.map((s) => [s.id, s.name, s.status, s.tags, s.priority, s.revision]),
    folders: folders.map((f) => [f.id, f.name, f.state, f.permission, f.mode]),
    images: images.map((i) => i.refs),
    presets: presets.map((p) => [p.name, p.resources]),
    recents: recents.map((r) => [r.id, r.name, r.pinned]),
    settings,
    agents: agents.map((a) => [a.name, a.group]),
    operations: operations.map((o) => o.id),
    files: files.entries.map((f) => [f.name, f.version]),
  }
}

interface Asked {
  name: string
  path: () => string
  /** Opens it and returns it, written into where it takes something. */
  open: (page: Page) => Promise<Locator>
  /** How its button to leave is called where it is not Cancel. */
  leave?: string
}

const inDialog = (page: Page, name: string | RegExp) => page.getByRole('dialog', { name })
async function written(dialog: Locator, field: string | RegExp, text: string): Promise<Locator> {
  await dialog.getByRole('textbox', { name: field }).fill(text)
  return dialog
}
const press = (page: Page | Locator, name: string | RegExp) => page.getByRole('button', { name }).first().click()
const files = (page: Page) => inDialog(page, 'kept-folder')

const asked: Asked[] = [
  {
    name: 'a new folder',
    path: () => '/folders',
    open: async (page) => (await press(page, 'New folder'), written(inDialog(page, 'New folder'), 'Name', 'unwanted')),
  },
  {
    name: 'a change of a folder',
    path: () => '/folders',
    open: async (page) => (
      await press(page, 'Rename or edit: kept-folder'),
      written(inDialog(page, 'Edit kept-folder'), 'Name', 'unwanted')
    ),
  },
  {
    name: 'a project to open',
    path: () => '/folders',
    open: async (page) => (await press(page, 'Open a project…'), inDialog(page, 'Open a project')),
    leave: 'Close',
  },
  {
    name: 'a project',
    path: () => '/folders',
    open: async (page) => (
      await press(page, 'Launch as a project: kept-folder'),
      inDialog(page, 'Project kept-folder')
    ),
    leave: 'Close',
  },
  {
    name: 'the end of a folder',
    path: () => '/folders',
    open: async (page) => {
      await page.getByRole('tab', { name: /Trash/ }).click()
      await press(page, 'Delete permanently')
      return written(inDialog(page, 'Permanently delete thrown-away?'), /./, 'thrown-away')
    },
  },
  {
    name: 'a new file',
    path: () => `/folders/${folder.id}`,
    open: async (page) => (
      await press(files(page), 'New file'),
      written(inDialog(page, 'New file'), 'Name', 'unwanted')
    ),
  },
  {
    name: 'a new directory',
    path: () => `/folders/${folder.id}`,
    open: async (page) => (
      await press(files(page), 'New folder'),
      written(inDialog(page, 'New folder'), 'Name', 'unwanted')
    ),
  },
  {
    name: 'the end of a file',
    path: () => `/folders/${folder.id}`,
    open: async (page) => (await press(files(page), 'Delete kept.txt'), inDialog(page, 'Delete kept.txt?')),
  },
  {
    name: 'a pull',
    path: () => '/images',
    open: async (page) => (
      await press(page, 'Pull an image'),
      written(inDialog(page, 'Pull an image'), /./, 'debian:12')
    ),
  },
  {
    name: 'the end of an image',
    path: () => '/images',
    open: async (page) => (await press(page, 'Remove: ubuntu:24.04'), inDialog(page, 'Remove ubuntu:24.04?')),
  },
  {
    name: 'a clean-up of images',
    path: () => '/images',
    open: async (page) => (await press(page, 'Clean up'), inDialog(page, 'Clean up images')),
  },
  {
    name: 'the end of a session',
    path: () => '/sessions',
    open: async (page) => (
      await press(row(page, 'kept-session'), 'Terminate'),
      inDialog(page, 'Terminate kept-session?')
    ),
  },
  {
    name: 'the end of a session by force',
    path: () => `/sessions/${session.id}`,
    open: async (page) => {
      await press(page, 'More actions')
      await page.getByRole('menuitem', { name: 'Force-terminate…' }).click()
      return inDialog(page, 'Terminate kept-session?')
    },
  },
  {
    name: 'an image of a session',
    path: () => `/sessions/${session.id}`,
    leave: 'Close',
    open: async (page) => (
      await press(inDialog(page, 'kept-session'), 'Commit'),
      written(inDialog(page, 'Create an image from kept-session'), 'Image name', 'unwanted')
    ),
  },
  {
    name: 'the apps of a session',
    path: () => `/sessions?apps=${session.id}`,
    leave: 'Close',
    open: (page) => Promise.resolve(inDialog(page, 'Apps of kept-session')),
  },
  {
    name: 'the recipe of a session',
    path: () => `/sessions/${session.id}`,
    leave: 'Close',
    open: async (page) => (
      await press(inDialog(page, 'kept-session'), 'Show recipe'),
      inDialog(page, 'Recipe of kept-session')
    ),
  },
  {
    name: 'the recent launches',
    path: () => '/launcher',
    leave: 'Close',
    open: async (page) => (await press(page, 'Recent history'), inDialog(page, 'Recent history')),
  },
  {
    name: 'a directory of the machine',
    path: () => '/launcher?step=storage',
    open: async (page) => (await press(page, 'Choose a directory…'), inDialog(page, 'Choose a directory')),
  },
  {
    name: 'a launch without a mount',
    path: () => '/launcher',
    leave: 'Back',
    open: async (page) => {
      await enter(page, { name: 'unwanted', image: 'python:3.12', memory: 128 })
      await page.getByRole('button', { name: 'Launch', exact: true }).click()
      return inDialog(page, 'Launch without a folder?')
    },
  },
]

describe('a dialog changes nothing when it is left', () => {
  it.each(asked)('$name', async ({ path, open, leave }) => {
    const before = await everything()
    const button = (_: Page, dialog: Locator) =>
      dialog
        .getByRole('button', { name: leave ?? 'Cancel', exact: true })
        .last()
        .click()
    const key = (page: Page) => escape(page)
    for (const close of [button, key]) {
      const page = await browser.page(program, path())
      const dialog = await open(page)
      await dialog.waitFor()
      await close(page, dialog)
      await dialog.waitFor({ state: 'detached' })
      expect(await everything()).toEqual(before)
      await browser.clear()
    }
  })
})
