import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FileListing, Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { entry, local, makeFolder, openedFolder } from './foldersPage'
import { stage } from './hooks'
import { escape } from './keys'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// Folders from their making to their end, and the files in them, as a person handles them.
const program = new DemoProgram('workstation')
const disk = join(program.disk, 'scratch')
const browser = new Browser()

stage(program, browser, { afresh: true })

const make = (name: string, path?: string) => makeFolder(program, name, path)
const opened = (name: string, files: Record<string, string | Buffer>) => openedFolder(browser, program, name, files)
const folders = () => program.call<Folder[]>('GET', '/folders')
const state = async (name: string) => (await folders()).find((f) => f.name === name)?.state
const names = async (id: string, path = '') =>
  (await program.call<FileListing>('GET', `/folders/${id}/files?path=${path}`)).entries.map((e) => e.name)

describe('a folder', () => {
  it('is made, renamed, trashed, restored and deleted for ever, and every dialog can be left', async () => {
    const page = await browser.page(program, '/folders')
    const others = (await folders()).length
    await page.getByRole('button', { name: 'New folder' }).first().click()
    let dialog = page.getByRole('dialog', { name: 'New folder' })
    await dialog.getByRole('textbox', { name: 'Name' }).fill('data')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await folders()).toHaveLength(others)

    await page.getByRole('button', { name: 'New folder' }).first().click()
    await dialog.getByRole('textbox', { name: 'Name' }).fill('no spaces here')
    expect(await dialog.getByRole('button', { name: 'Create' }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox', { name: 'Name' }).fill('data')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'data', exact: true }).waitFor()

    await page.getByRole('button', { name: 'Rename or edit: data' }).click()
    dialog = page.getByRole('dialog', { name: 'Edit data' })
    await dialog.getByRole('textbox', { name: 'Name' }).fill('images')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'images', exact: true }).waitFor()

    await page.getByRole('button', { name: 'Move to trash: images' }).click()
    await eventually('it is in the trash', async () => (await state('images')) === 'trashed')
    await page.getByRole('tab', { name: /Trash/ }).click()
    await page.getByRole('button', { name: 'Restore' }).click()
    await eventually('it is back', async () => (await state('images')) === 'ready')

    await page.getByRole('tab', { name: /Active/ }).click()
    await page.getByRole('button', { name: 'Move to trash: images' }).click()
    await page.getByRole('tab', { name: /Trash/ }).click()
    await page.getByRole('button', { name: 'Delete permanently' }).click()
    dialog = page.getByRole('dialog', { name: 'Permanently delete images?' })
    const go = dialog.getByRole('button', { name: 'Delete permanently' })
    expect(await go.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('image')
    expect(await go.isDisabled()).toBe(true)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await state('images')).toBe('trashed')
    await page.getByRole('button', { name: 'Delete permanently' }).click()
    await dialog.getByRole('textbox').fill('images')
    await go.click()
    await eventually('it is gone', async () => (await folders()).length === others)
  })

  it('is served by sftp alone, in a system session', async () => {
    const folder = await make('by-hand')
    const page = await browser.page(program, '/folders')
    await page.getByRole('button', { name: 'Upload by SFTP: by-hand' }).click()
    const dialog = page.getByRole('dialog', { name: 'Files of sftp-by-hand by SFTP' })
    await dialog.getByText('serves one folder and runs no programs').waitFor()
    const line = await dialog.locator('[data-command="sftp"] code').innerText()
    expect(await dialog.locator('[data-command]').count()).toBe(2)
    await picture(page, 'folder-sftp')
    writeFileSync(join(program.home, 'local.csv'), 'a,b\n')
    execFileSync('sh', ['-c', line.replace('sftp ', 'sftp -q -b - ')], {
      cwd: program.home,
      input: 'put local.csv\n',
    })
    expect(await names(folder.id)).toEqual(['local.csv'])
    await dialog.getByRole('button', { name: 'Test the connection' }).click()
    await dialog.getByText('Login works').waitFor()
    await page.keyboard.press('Escape')

    await page.goto(`${program.url}/sessions?type=system`)
    const served = row(page, 'sftp-by-hand')
    await served.getByRole('button', { name: 'SFTP' }).waitFor()
    expect(await served.getByRole('button', { name: 'Terminal' }).count()).toBe(0)
    await picture(page, 'system-session')
    const [session] = (await program.sessions()).filter((s) => s.type === 'system')
    expect(session?.spec.mounts).toHaveLength(1)
    expect(session?.spec.idle?.network).toBe('15m')
  })

  it('is protected while a session has it mounted', async () => {
    const folder = await make('used')
    const session = await program.running({ name: 'user', image: 'python:3.12', mounts: [{ folder: 'used' }] })
    const page = await browser.page(program, '/folders')
    const row = page.locator(`[data-row-key="${folder.id}"]`)
    await row.getByRole('link', { name: 'user' }).waitFor()
    expect(await row.getByRole('button', { name: 'Move to trash: used' }).isDisabled()).toBe(true)
    await expect(program.call('POST', `/folders/${folder.id}/trash`)).rejects.toThrow('folder_update_conflict')
    await program.call('POST', `/sessions/${session.id}/terminate`, { forced: true })
    await eventually('it can be trashed', () => row.getByRole('button', { name: 'Move to trash: used' }).isEnabled())
  })

  it('keeps downloads for all sessions, and is emptied while they run', async () => {
    const session = await program.running({ name: 'downloads', image: 'python:3.12' })
    expect(session.folders).toMatchObject([{ name: '.cache', target: '/home/work/.cache', auto: true }])
    await program.call('POST', `/sessions/${session.id}/files/directory?path=.cache/pip`)
    const cache = (await folders()).find((f) => f.usedBy.some((user) => user.session === session.id))
    expect(await names(cache?.id ?? '')).toEqual(['pip'])
    const page = await browser.page(program, '/folders')
    const row = page.locator(`[data-row-key="${cache?.id ?? ''}"]`)
    await row.getByRole('link', { name: 'downloads' }).waitFor()
    await picture(page, 'folders-cache')
    await row.getByRole('button', { name: 'Empty: .cache' }).click()
    const dialog = page.getByRole('dialog', { name: 'Empty .cache?' })
    await dialog.getByText(/^In use by downloads/).waitFor()
    await picture(page, 'folders-cache-empty')
    await dialog.getByRole('button', { name: /^(Empty|Delete)/ }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await names(cache?.id ?? '')).toEqual([])
    await page.goto(`${program.url}/sessions/${session.id}`)
    await page.getByText('/home/work/.cache', { exact: true }).waitFor()
    await program.call('POST', `/sessions/${session.id}/terminate`, { forced: true })
  })

  it('is mounted in part: the launcher offers what is in it', async () => {
    const dir = join(disk, 'parts')
    mkdirSync(join(dir, 'images', 'train'), { recursive: true })
    writeFileSync(join(dir, 'file'), '')
    await make('parts', '/scratch/parts')
    const page = await browser.page(program, '/launcher')
    await page.locator('button[data-step="storage"]').click()
    await page.getByRole('checkbox', { name: 'Mount parts', exact: true }).check()
    await page.getByRole('button', { name: 'Choose a directory in the folder of row 1' }).click()
    const dialog = page.getByRole('dialog', { name: 'Part of parts to mount' })
    await dialog.getByRole('button', { name: 'images' }).click()
    await dialog.getByRole('button', { name: 'train' }).click()
    await dialog.getByText('No directories here.').waitFor()
    await dialog.getByRole('button', { name: 'Up' }).click()
    await dialog.getByRole('button', { name: 'train' }).waitFor()
    await dialog.getByRole('button', { name: 'Use this directory' }).click()
    await eventually(
      'the path is taken',
      async () =>
        (await page.getByRole('textbox', { name: 'Mount 1: subdirectory of the folder' }).inputValue()) === 'images',
    )
  })
})

describe('files in a folder', () => {
  it('are brought, one by one and as a tree, and asked about where they are there already', async () => {
    const { page, folder, list } = await opened('uploads', {})
    await list.getByText('This folder is empty.').waitFor()
    const input = page.locator('input[type=file]').first()
    await input.setInputFiles([local('a.txt', 'first a'), local('b.txt', 'first b'), local('c.txt', 'first c')])
    await eventually('they are there', async () => (await names(folder.id)).length === 3)

    await input.setInputFiles([local('a.txt', 'second a'), local('b.txt', 'second b')])
    let dialog = page.getByRole('dialog', { name: 'a.txt already exists' })
    await dialog.getByRole('row', { name: /Existing 7 B/ }).waitFor()
    await dialog.getByRole('row', { name: /New 8 B .*newer/ }).waitFor()
    await dialog.getByRole('checkbox', { name: 'Do the same for the others' }).check()
    await dialog.getByRole('button', { name: 'Keep both' }).click()
    await eventually(
      'both are kept',
      async () => (await names(folder.id)).join() === 'a (2).txt,a.txt,b (2).txt,b.txt,c.txt',
    )

    await input.setInputFiles([local('c.txt', 'second c')])
    dialog = page.getByRole('dialog', { name: 'c.txt already exists' })
    await dialog.getByRole('button', { name: 'Skip' }).click()
    await page.getByText('Skipped').waitFor()
    expect(readFileSync(join(disk, 'uploads', 'c.txt'), 'utf8')).toBe('first c')

    await input.setInputFiles([local('c.txt', 'third c')])
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await eventually('it is replaced', () =>
      Promise.resolve(readFileSync(join(disk, 'uploads', 'c.txt'), 'utf8') === 'third c'),
    )

    const tree = join(disk, 'tree')
    mkdirSync(join(tree, 'deep'), { recursive: true })
    writeFileSync(join(tree, 'top'), '1')
    writeFileSync(join(tree, 'deep', 'below'), '2')
    await page.locator('input[type=file]').nth(1).setInputFiles(tree)
    await eventually(
      'the tree is there',
      async () => (await names(folder.id, 'tree%2Fdeep').catch(() => [])).join() === 'below',
    )
    await entry(list, 'tree').click()
    await entry(list, 'deep').waitFor()
  })

  it('are renamed in their rows, made, deleted, and fetched as one archive', async () => {
    const { page, folder, list } = await opened('handled', { 'one.txt': '1', 'two.txt': '2' })
    await list.getByRole('button', { name: 'Rename one.txt' }).click()
    const field = list.getByRole('textbox', { name: 'Rename one.txt' })
    await field.fill('nothing.txt')
    await field.press('Escape')
    await entry(list, 'one.txt').waitFor()
    expect(await names(folder.id)).toEqual(['one.txt', 'two.txt'])
    await entry(list, 'one.txt').press('F2')
    await field.fill('two.txt')
    await page.getByText('This name is already in use.').waitFor()
    await field.fill('uno.txt')
    await field.press('Enter')
    await entry(list, 'uno.txt').waitFor()
    expect(await names(folder.id)).toEqual(['two.txt', 'uno.txt'])

    for (const what of ['New folder', 'New file']) {
      await list.getByRole('button', { name: what }).click()
      const dialog = page.getByRole('dialog', { name: what })
      await dialog.getByRole('textbox', { name: 'Name' }).fill(what.toLowerCase())
      await dialog.getByRole('button', { name: 'Create' }).click()
      await entry(list, what.toLowerCase()).waitFor()
    }

    await list.getByRole('checkbox', { name: 'Select two.txt' }).check()
    await list.getByRole('checkbox', { name: 'Select uno.txt' }).check()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      list.getByRole('button', { name: 'Download', exact: true }).first().click(),
    ])
    expect(download.suggestedFilename()).toBe('handled.zip')
    expect(
      readFileSync(await download.path())
        .subarray(0, 2)
        .toString(),
    ).toBe('PK')

    await list.getByRole('button', { name: 'Delete', exact: true }).first().click()
    const question = page.getByRole('dialog', { name: 'Delete 2 items?' })
    await question.getByRole('button', { name: 'Cancel' }).click()
    expect(await names(folder.id)).toHaveLength(4)
    await list.getByRole('button', { name: 'Delete', exact: true }).first().click()
    await question.getByRole('button', { name: 'Delete' }).click()
    await eventually('they are gone', async () => (await names(folder.id)).length === 2)
  })

  it('are moved to other directories, by dragging and in two steps', async () => {
    const { page, folder, list } = await opened('moved', { 'one.txt': '1', 'two.txt': '2', 'three.txt': '3' })
    for (const dir of ['left', 'right']) await program.call('POST', `/folders/${folder.id}/files/directory?path=${dir}`)
    await list.getByRole('button', { name: 'Refresh' }).click()
    await entry(list, 'left').waitFor()
    await entry(list, 'one.txt').dragTo(entry(list, 'left'))
    await eventually('it is in there', async () => (await names(folder.id, 'left')).join() === 'one.txt')
    await entry(list, 'one.txt').waitFor({ state: 'detached' })

    await list.getByRole('checkbox', { name: 'Select right' }).check()
    await list.getByRole('checkbox', { name: 'Select two.txt' }).check()
    await list.getByRole('button', { name: 'Move', exact: true }).click()
    const put = list.getByRole('button', { name: 'Move here' })
    expect(await put.isDisabled()).toBe(true)
    await entry(list, 'right').click()
    await eventually('two.txt can go there, the directory not into itself', () => put.isEnabled())
    await list.getByRole('button', { name: 'moved', exact: true }).click()
    await entry(list, 'left').click()
    await put.click()
    await eventually('they are there', async () => (await names(folder.id, 'left')).join() === 'one.txt,right,two.txt')
    await entry(list, 'two.txt').dragTo(
      list.getByRole('navigation', { name: 'Path' }).getByRole('button', { name: 'moved' }),
    )
    await eventually('it is back', async () => (await names(folder.id)).join() === 'left,three.txt,two.txt')

    await program.call('POST', `/folders/${folder.id}/files/directory?path=left%2Fthree.txt`)
    await list.getByRole('button', { name: 'moved', exact: true }).click()
    await entry(list, 'three.txt').dragTo(entry(list, 'left'))
    await page.getByText('1 item could not be moved.').waitFor()
    expect(await names(folder.id)).toContain('three.txt')
  })

  it('are looked at and edited, and what somebody else wrote meanwhile is not lost', async () => {
    const pixel = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    const notebook = JSON.stringify({
      cells: [{ cell_type: 'code', source: 'print(6 * 7)', outputs: [{ text: '42\n' }] }],
    })
    const { page, list, dir } = await opened('looked', {
      'table.csv': 'name,score\r\nada,1\r\n',
      'dot.png': pixel,
      'book.ipynb': notebook,
      'run.sh': 'echo 1\r\n',
      raw: Buffer.from([0, 1, 2]),
    })
    const dialog = page
      .getByRole('dialog')
      .filter({ has: page.locator('.ant-modal-body, .ant-modal-content') })
      .last()
    const close = () => escape(page)
    await entry(list, 'table.csv').click()
    await page.getByRole('columnheader', { name: 'score' }).waitFor()
    await close()
    await entry(list, 'dot.png').click()
    await page.getByRole('img', { name: 'dot.png' }).waitFor()
    await close()
    await entry(list, 'book.ipynb').click()
    await page.getByText('print(6 * 7)').first().waitFor()
    await page.getByText('42', { exact: true }).waitFor()
    await close()
    await entry(list, 'raw').click()
    await page.getByText('Binary file, no preview.').waitFor()
    await close()

    await entry(list, 'run.sh').click()
    const editor = page.getByRole('textbox', { name: 'run.sh' })
    await editor.fill('echo 2\n')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await eventually('it is written with its line ends', () =>
      Promise.resolve(readFileSync(join(dir, 'run.sh'), 'utf8') === 'echo 2\r\n'),
    )

    await entry(list, 'run.sh').click()
    await editor.fill('mine\n')
    writeFileSync(join(dir, 'run.sh'), 'theirs, and longer\n')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const question = page.getByRole('dialog', { name: 'The file has changed' })
    await question.getByRole('button', { name: 'Cancel' }).click()
    expect(readFileSync(join(dir, 'run.sh'), 'utf8')).toBe('theirs, and longer\n')
    await dialog.getByRole('button', { name: 'Cancel' }).first().click()
    await page.getByRole('button', { name: 'Discard' }).click()
    await editor.waitFor({ state: 'detached' })
  })

  it('may be called what they like', async () => {
    const { page, list, folder, dir } = await opened('odd', {})
    writeFileSync(Buffer.from(`${dir}/line\nbreak`), 'x')
    writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0xff, 0xfe])]), 'bytes')
    writeFileSync(join(dir, 'evil\u202egnp.exe'), 'x')
    await list.getByRole('button', { name: 'Refresh' }).click()
    await entry(list, 'line\\nbreak').waitFor()
    await entry(list, 'evil\\u{202e}gnp.exe').waitFor()
    await list.getByRole('button', { name: 'Rename \ufffd\ufffd' }).click()
    const field = list.getByRole('textbox', { name: 'Rename \ufffd\ufffd' })
    await field.fill('text')
    await field.press('Enter')
    await entry(list, 'text').click()
    await page.getByRole('textbox', { name: 'text' }).waitFor()
    expect(await page.getByRole('textbox', { name: 'text' }).inputValue()).toBe('bytes')
    await escape(page)
    await list.getByRole('button', { name: 'Delete line\\nbreak' }).click()
    await page.getByRole('dialog', { name: 'Delete line\\nbreak?' }).getByRole('button', { name: 'Delete' }).click()
    await eventually('it is gone', async () => (await names(folder.id)).length === 2)
  })

  it('are shown and scrolled through by the ten thousand', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [`image-${String(i).padStart(5, '0')}.png`, '']),
    )
    const { page, list } = await opened('many', many)
    await list.getByText('10000 items').waitFor()
    await entry(list, 'image-00000.png').waitFor()
    const body = list.locator('.ant-table-tbody-virtual-holder')
    const box = await body.boundingBox()
    await page.mouse.move((box?.x ?? 0) + 100, (box?.y ?? 0) + 100)
    for (let step = 0; step < 10; step++) {
      await page.mouse.wheel(0, 3200)
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
      expect(await list.locator('.ant-table-row').count()).toBeLessThan(100)
    }
    await eventually('it has moved', async () => !(await entry(list, 'image-00000.png').isVisible()))
  })
})
