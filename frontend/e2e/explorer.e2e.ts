import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { FileListing, Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { drag } from './drag'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// Section 12, "Data", where folders.e2e.ts does not show it: folders of every kind · the explorer opened, closed,
// looked into ·
// dropped files and trees · read-only · new files · a folder that is not there. Slipway shares no folder between
// people and has
// no cloneable ones; what their file browser does, the explorer does.
const program = new DemoProgram('workstation')
const disk = join(program.disk, 'scratch')
const browser = new Browser()

stage(program, browser, { afresh: true })

const folders = () => program.call<Folder[]>('GET', '/folders')
const named = async (name: string) => (await folders()).find((f) => f.name === name)
const names = async (id: string, path = '') =>
  (await program.call<FileListing>('GET', `/folders/${id}/files?path=${path}`)).entries.map((e) => e.name)

/** A folder that is a directory of the machine, with a file in it. */
async function make(name: string, permission = 'rw'): Promise<Folder> {
  mkdirSync(join(disk, name, 'inner'), { recursive: true })
  writeFileSync(join(disk, name, 'kept.txt'), 'kept')
  return program.call<Folder>('POST', '/folders', { name, path: `/scratch/${name}`, permission })
}

async function open(folder: Folder): Promise<{ page: Page; list: Locator }> {
  const page = await browser.page(program, `/folders/${folder.id}`)
  const list = page.getByRole('dialog', { name: folder.name })
  await list.getByRole('navigation', { name: 'Path' }).waitFor()
  return { page, list }
}

const entry = (list: Locator, name: string) => list.getByRole('button', { name, exact: true })

describe('a folder', () => {
  it('is made for reading, for models, always mounted, or of a directory that is there', async () => {
    mkdirSync(join(disk, 'there-already'))
    const page = await browser.page(program, '/folders')
    const dialog = page.getByRole('dialog', { name: 'New folder' })
    const create = async (name: string, choose: () => Promise<unknown>) => {
      await page.getByRole('button', { name: 'New folder' }).first().click()
      await dialog.getByRole('textbox', { name: 'Name' }).fill(name)
      await choose()
      await dialog.getByRole('button', { name: 'Create' }).click()
    }
    const row = (name: string) =>
      page.locator('[data-row-key]').filter({ has: page.getByRole('button', { name, exact: true }) })
    await create('usual', async () => undefined)
    await row('usual').getByText('Read & write').waitFor()
    await create('weights', async () => {
      await dialog.getByText('Read-only', { exact: true }).click()
      await dialog.getByText('Models', { exact: true }).click()
    })
    await row('weights').getByText('Read-only').waitFor()
    await row('weights').getByText('Models').waitFor()
    await create('.settings', async () => undefined)
    await row('.settings').getByText('Auto-mounted').waitFor()
    await create('linked', async () => {
      await dialog.getByText('Existing directory', { exact: true }).click()
      await dialog.getByRole('textbox', { name: 'Path of the directory' }).fill('/scratch/there-already')
    })
    await row('linked').getByText('Linked', { exact: true }).waitFor()
    expect(await named('weights')).toMatchObject({ permission: 'ro', mode: 'model', auto: false })
    expect(await named('.settings')).toMatchObject({ permission: 'rw', mode: 'general', auto: true })
    // What cannot be is refused where it was asked for.
    await create('usual', async () => undefined)
    await dialog.getByRole('alert').getByText('folder_create_already-exists').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await create('nowhere', async () => {
      await dialog.getByText('Existing directory', { exact: true }).click()
      await dialog.getByRole('textbox', { name: 'Path of the directory' }).fill('/no/such/directory')
    })
    await dialog.getByRole('alert').getByText('file_use_invalid').waitFor()
    await picture(page, 'folder-refused')
    expect(await named('nowhere')).toBeUndefined()
  })
})

describe('the explorer', () => {
  it('opens by the name, goes down and up, and closes to the list', async () => {
    const folder = await make('walked')
    const page = await browser.page(program, '/folders')
    await page.getByRole('button', { name: 'walked', exact: true }).click()
    const list = page.getByRole('dialog', { name: 'walked' })
    await list.locator('[data-row-key]', { hasText: 'kept.txt' }).getByText('4 B').waitFor()
    await entry(list, 'inner').click()
    await list.getByText('This folder is empty.').waitFor()
    expect(page.url()).toContain(`/folders/${folder.id}?path=inner`)
    await list.getByRole('navigation', { name: 'Path' }).getByRole('button', { name: 'walked' }).click()
    await entry(list, 'kept.txt').waitFor()
    await list.getByRole('button', { name: 'Close' }).first().click()
    await list.waitFor({ state: 'detached' })
    expect(new URL(page.url()).pathname).toBe('/folders')
    await page.goBack()
    await entry(list, 'kept.txt').waitFor()
  })

  it('says that a folder or a directory in it is not there', async () => {
    const folder = await make('half-there')
    const page = await browser.page(program, '/folders/nosuchfolder')
    await page.getByRole('dialog', { name: 'Folder not found' }).getByText('No folder has this address.').waitFor()
    await picture(page, 'folder-unknown')
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await page.waitForURL('**/folders')
    await page.goto(`${program.url}/folders/${folder.id}?path=gone`)
    const alert = page.getByRole('dialog', { name: 'half-there' }).getByRole('alert')
    await alert.getByText(/_not-found$/).waitFor()
    mkdirSync(join(disk, 'half-there', 'gone'))
    await alert.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('This folder is empty.').waitFor()
  })

  it('takes what is dropped on it, trees too, into the directory that is looked at', async () => {
    const folder = await make('dropped-on')
    mkdirSync(join(disk, 'tree', 'leaf'), { recursive: true })
    writeFileSync(join(disk, 'tree', 'leaf', 'deep.txt'), 'deep')
    writeFileSync(join(disk, 'loose.txt'), 'loose')
    const { page, list } = await open(folder)
    await entry(list, 'inner').click()
    const empty = list.getByText('This folder is empty.')
    await empty.waitFor()
    await drag(page, empty, [join(disk, 'tree'), join(disk, 'loose.txt')], () =>
      list.getByText('Drop to upload to inner').waitFor(),
    )
    await entry(list, 'loose.txt').waitFor()
    await eventually(
      'the tree came too',
      async () => (await names(folder.id, 'inner%2Ftree%2Fleaf').catch(() => [])).join() === 'deep.txt',
    )
    expect(readFileSync(join(disk, 'dropped-on', 'inner', 'tree', 'leaf', 'deep.txt'), 'utf8')).toBe('deep')
    expect(await names(folder.id)).toEqual(['inner', 'kept.txt'])
  })

  it('changes nothing in a folder that is only to be read', async () => {
    const folder = await make('only-read', 'ro')
    writeFileSync(join(disk, 'unwanted.txt'), 'x')
    const { page, list } = await open(folder)
    await list.getByText('Read-only.').waitFor()
    for (const name of [
      'Upload files',
      'Upload a folder',
      'New folder',
      'New file',
      'Rename kept.txt',
      'Delete kept.txt',
    ]) {
      expect(await list.getByRole('button', { name }).count()).toBe(0)
    }
    await entry(list, 'kept.txt').press('F2')
    expect(await list.getByRole('textbox', { name: 'Rename kept.txt' }).count()).toBe(0)
    await drag(page, entry(list, 'kept.txt'), [join(disk, 'unwanted.txt')], () => Promise.resolve())
    expect(await page.getByText('Drop to upload').count()).toBe(0)
    await list.getByRole('checkbox', { name: 'Select kept.txt' }).check()
    await list.getByRole('button', { name: 'Download', exact: true }).first().waitFor()
    expect(await list.getByRole('button', { name: 'Delete' }).count()).toBe(0)
    await entry(list, 'kept.txt').click()
    await page.getByText('kept', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0)
    await expect(program.call('POST', `/folders/${folder.id}/files/directory?path=new`)).rejects.toThrow(
      /file_use_forbidden/,
    )
    expect(await names(folder.id)).toEqual(['inner', 'kept.txt'])
  })

  it('makes files of any good name, and says what is wrong with another', async () => {
    const folder = await make('new-files')
    const { page, list } = await open(folder)
    const dialog = page.getByRole('dialog', { name: 'New file' })
    const field = dialog.getByRole('textbox', { name: 'Name' })
    for (const name of ['notes.txt', 'model-definition.yaml', '공책 1.md']) {
      await list.getByRole('button', { name: 'New file' }).click()
      await field.fill(name)
      await field.press('Enter')
      await entry(list, name).waitFor()
    }
    await list.getByRole('button', { name: 'New file' }).click()
    expect(await dialog.getByRole('button', { name: 'Create' }).isDisabled()).toBe(true)
    await field.press('Enter')
    for (const [name, why] of [
      ['a/b', 'A name cannot contain a slash.'],
      ['..', 'Enter a name.'],
      ['kept.txt', 'This name is already in use.'],
      ['x'.repeat(256), 'A name can have at most 255 bytes.'],
    ] as const) {
      await field.fill(name)
      await dialog.getByText(why).waitFor()
      await field.press('Enter')
      expect(await dialog.getByRole('button', { name: 'Create' }).isDisabled()).toBe(true)
    }
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await names(folder.id)).toEqual(['inner', 'kept.txt', 'model-definition.yaml', 'notes.txt', '공책 1.md'])
    expect(readFileSync(join(disk, 'new-files', 'kept.txt'), 'utf8')).toBe('kept')
  })

  it('makes directories in a folder where its part to mount is chosen, and the part stays chosen', async () => {
    await make('chosen-from')
    const page = await browser.page(program, '/launcher?step=storage')
    await page.getByRole('checkbox', { name: 'Mount chosen-from', exact: true }).check()
    const browse = page.getByRole('button', { name: 'Choose a directory in the folder of row 1' })
    await browse.click()
    const dialog = page.getByRole('dialog', { name: 'Part of chosen-from to mount' })
    await dialog.getByRole('button', { name: 'New directory here' }).click()
    const field = dialog.getByRole('textbox', { name: 'Name of the new directory' })
    for (const [name, why] of [
      ['inner', 'This name is already in use.'],
      ['..', 'This name cannot be mounted.'],
      ['a/b', 'This name cannot be mounted.'],
    ] as const) {
      await field.fill(name)
      await dialog.getByRole('alert').getByText(why).waitFor()
    }
    await field.fill('run-2')
    await dialog.getByRole('button', { name: 'Create' }).click()
    // The listing stays where it was, with the new one in it.
    await dialog.getByRole('button', { name: 'run-2', exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'inner', exact: true }).waitFor()
    await picture(page, 'launcher-subpath')
    await dialog.getByRole('button', { name: 'run-2', exact: true }).click()
    await dialog.getByRole('button', { name: 'New directory here' }).click()
    await field.press('Escape')
    expect(await dialog.isVisible()).toBe(true)
    await dialog.getByRole('button', { name: 'Use this directory' }).click()
    const chosen = page.getByRole('textbox', { name: 'Mount 1: subdirectory of the folder' })
    await eventually('the part is chosen', async () => (await chosen.inputValue()) === 'run-2')
    // Another preset changes nothing of it, and the picker still opens there.
    await page.locator('button[data-step="environment"]').click()
    await page.getByRole('combobox', { name: 'Preset' }).click()
    await page.locator('.ant-select-dropdown:visible').getByText('Small', { exact: true }).click()
    await page.locator('button[data-step="storage"]').click()
    expect(await chosen.inputValue()).toBe('run-2')
    await page.reload()
    await eventually('it survives a reload', async () => (await chosen.inputValue()) === 'run-2')
    await browse.click()
    expect(await dialog.getByRole('textbox', { name: 'Path' }).inputValue()).toBe('chosen-from/run-2')
  })
})
