import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { FileListing, Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { drag } from './drag'
import { stage } from './hooks'
import { DemoProgram } from './program'

// A directory that is dropped onto the page opens as a project; a browser uploads it first.
const program = new DemoProgram('workstation')
const browser = new Browser()
const dir = mkdtempSync(join(tmpdir(), 'slipway-drop-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
mkdirSync(join(dir, 'my paper/src'), { recursive: true })
mkdirSync(join(dir, 'my paper/empty'))
writeFileSync(join(dir, 'my paper/requirements.txt'), 'numpy\n')
writeFileSync(join(dir, 'my paper/src/train.py'), 'print(1)\n')
const paper = join(dir, 'my paper')
const hint = 'Drop a folder to open it as a project'

stage(program, browser)

const names = async (folder: string, path: string) =>
  (await program.call<FileListing>('GET', `/folders/${folder}/files?path=${path}`)).entries.map((e) => e.name)

describe('what is dropped onto the page', () => {
  it('is uploaded into a new folder and opened as a project if it is a directory', async () => {
    const page = await browser.page(program, '/sessions')
    await page.getByRole('heading', { name: 'Sessions' }).first().waitFor()
    await drag(page, page.locator('main'), [paper], async () => {
      await page.getByText(hint).waitFor()
      await picture(page, 'drop-over')
    })
    const dialog = page.getByRole('dialog', { name: 'Open a project' })
    await dialog.getByText('Uploads 2 files (15 B)', { exact: false }).waitFor()
    await picture(page, 'drop-upload')
    const before = await program.call<Folder[]>('GET', '/folders')
    expect(before.map((f) => f.name)).not.toContain('my-paper')
    await dialog.getByRole('button', { name: 'Upload' }).click()
    const project = page.getByRole('dialog', { name: 'Project my-paper' })
    await project.getByText('requirements.txt').first().waitFor()
    const made = (await program.call<Folder[]>('GET', '/folders')).find((f) => f.name === 'my-paper')!
    expect(await names(made.id, '')).toEqual(expect.arrayContaining(['empty', 'requirements.txt', 'src']))
    expect(await names(made.id, 'src')).toEqual(['train.py'])
  })

  it('says what can be dropped if it is a file, and leaves uploads and recipes to their places', async () => {
    const page = await browser.page(program, '/sessions')
    const file = join(paper, 'requirements.txt')
    await page.getByRole('heading', { name: 'Sessions' }).first().waitFor()
    await drag(page, page.locator('main'), [file], () => page.getByText(hint).waitFor())
    await page.getByText('Drop a single folder to open it as a project.').waitFor()
    await page.goto(`${program.url}/launcher`)
    await page.getByRole('heading', { name: 'Launch a session' }).waitFor()
    await drag(page, page.locator('main'), [paper], async () => {
      await page.getByText('A folder opens as a project.', { exact: false }).waitFor()
      expect(await page.getByText(hint).count()).toBe(0)
    })
    await page.getByRole('dialog', { name: 'Open a project' }).waitFor()
    const folder = await program.call<Folder>('POST', '/folders', { name: 'taker' })
    await page.goto(`${program.url}/folders/${folder.id}`)
    const list = page.getByRole('dialog', { name: 'taker' })
    await list.getByRole('navigation', { name: 'Path' }).waitFor()
    await drag(page, list.getByText('This folder is empty'), [paper], async () => {
      await list.getByText('Drop to upload to taker').waitFor()
      expect(await page.getByText(hint).count()).toBe(0)
    })
    await list.getByRole('button', { name: 'my paper', exact: true }).waitFor()
    expect(await page.getByRole('dialog', { name: 'Open a project' }).count()).toBe(0)
  })
})
