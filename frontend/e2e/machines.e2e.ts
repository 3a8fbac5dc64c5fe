import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { FileListing, Folder, Operation } from '@/api/types.gen'
import { inSession } from './appsPage'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { askFor, choose, launch, row, step } from './launcherPage'
import { DemoProgram, eventually } from './program'

// The machine comes first: what of folders is there, and what has to come from another machine, follows from it.
const program = new DemoProgram('lab')
const browser = new Browser()

stage(program, browser, {
  prepare: async () => {
    await program.call('POST', '/folders', { name: 'corpus', agent: 'lab' })
  },
  afresh: true,
})

const open = (at = 'storage'): Promise<Page> => browser.page(program, `/launcher?step=${at}`)
const tick = (page: Page, name: string): Locator => page.getByRole('checkbox', { name: `Mount ${name}`, exact: true })
const machine = (page: Page, name: string): Promise<void> => choose(page, 'Machine', name)
const folders = () => program.call<Folder[]>('GET', '/folders')
const on = async (agent: string, name: string) => (await folders()).find((f) => f.agent === agent && f.name === name)
const ofFolder = (page: Page, name: string): Locator =>
  page.getByRole('row').filter({ has: page.getByRole('button', { name: new RegExp(`^Files of ${name} `) }) })

async function newFolder(page: Page, name: string, agent: string): Promise<void> {
  await page.getByRole('button', { name: 'New folder' }).click()
  await choose(page, 'Machine of the new folder', `on ${agent}`)
  await page.getByRole('textbox', { name: `Name of the new folder on ${agent}` }).fill(name)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await tick(page, `${name} · ${agent}`).waitFor()
}

/** The names and sizes of the files in a folder. */
async function content(folder: string): Promise<string[]> {
  const { entries } = await program.call<FileListing>('GET', `/folders/${folder}/files?path=/`)
  return entries.map((file) => `${file.name} ${file.size}`)
}

/** The bytes of a file whose copy takes long enough to be cut in the middle. */
const large = 320 << 20

describe('the machine of a launch', () => {
  it('comes before data and resources', async () => {
    const page = await open('type')
    const machines = page.getByRole('region', { name: 'Machine' })
    await machines.getByRole('combobox', { name: 'Machine' }).waitFor()
    const titles = await page.getByRole('heading', { level: 2 }).allTextContents()
    expect(titles.indexOf('Machine')).toBeGreaterThan(titles.indexOf('Type'))
    expect(titles.indexOf('Machine')).toBeLessThan(titles.indexOf('Queue'))
    await machine(page, 'lab')
    await step(page, 'type').getByText('Interactive · lab').waitFor()
    await picture(page, 'launcher-machine')
    await step(page, 'environment').click()
    await page.getByRole('heading', { name: 'Resources' }).waitFor()
    expect(await page.getByRole('combobox', { name: 'Machine' }).count()).toBe(0)
    await step(page, 'confirm').click()
    await page.getByRole('region', { name: 'Type & machine' }).getByText('lab', { exact: true }).waitFor()
  })

  it('is a column of the table of folders', async () => {
    const page = await open()
    await page.getByRole('columnheader', { name: 'Machine' }).waitFor()
    await ofFolder(page, 'churn').getByRole('cell', { name: 'workstation', exact: true }).waitFor()
    await ofFolder(page, 'corpus').getByRole('cell', { name: 'lab', exact: true }).waitFor()
    // Also once a machine is chosen, whose folders come first.
    await machine(page, 'lab')
    await ofFolder(page, 'churn').getByRole('cell', { name: 'workstation', exact: true }).waitFor()
    await eventually('its own folder is the first', async () =>
      (await page.getByRole('row').nth(1).textContent())?.includes('corpus'),
    )
  })

  it('is chosen by the person for a new folder, also on Automatic', async () => {
    const page = await open()
    await newFolder(page, 'fresh', 'lab')
    await eventually('it is ticked', () => tick(page, 'fresh · lab').isChecked())
    expect([await on('lab', 'fresh'), await on('workstation', 'fresh')]).toMatchObject([{ name: 'fresh' }, undefined])
    await page.getByText('It has fresh.').waitFor()
  })

  it('leaves every ticked folder ticked, whatever is created or chosen', async () => {
    const page = await open()
    const three = ['churn', 'recipes', 'results'].map((name) => `${name} · workstation`)
    for (const name of three) await tick(page, name).check()
    await newFolder(page, 'beside', 'lab')
    const away = page.getByText('This folder is on lab, but the session runs on workstation.')
    await away.waitFor()
    await picture(page, 'launcher-away')
    const ticked = async () =>
      (await Promise.all([...three, 'beside · lab'].map((name) => tick(page, name).isChecked()))).every(Boolean)
    expect(await ticked()).toBe(true)
    expect(await page.getByLabel(/^Directory \d+: path in the session$/).count()).toBe(4)
    await machine(page, 'lab')
    await away.waitFor({ state: 'detached' })
    await eventually(
      'the other three are away now',
      async () => (await page.getByText('This folder is on workstation, but the session runs on lab.').count()) === 3,
    )
    expect(await ticked()).toBe(true)
    await machine(page, 'Automatic')
    await page.getByText('The session runs on workstation, where its data is.').waitFor()
    expect(await ticked()).toBe(true)
  })

  it('gets a folder of another machine copied, and the session finds it there', async () => {
    const page = await open()
    await machine(page, 'lab')
    await tick(page, 'churn · workstation').check()
    await page.getByText('This folder is on workstation, but the session runs on lab.').waitFor()
    await step(page, 'confirm').click()
    expect(await page.getByRole('button', { name: 'Launch', exact: true }).isDisabled()).toBe(true)
    const offer = page.locator('[data-lack="mounts[0].folder"]').getByRole('button', { name: /^Copy it to lab/ })
    await offer.waitFor()
    await picture(page, 'launcher-copy-offer')
    await offer.click()
    await eventually('it may be launched', () => page.getByRole('button', { name: 'Launch', exact: true }).isEnabled())
    const there = await on('lab', 'churn')
    const here = await on('workstation', 'churn')
    expect(await content(there?.id ?? '')).toEqual(await content(here?.id ?? ''))
    expect((await content(there?.id ?? '')).length).toBeGreaterThan(3)
    await launch(page, true)
    await row(page, /./).first().waitFor()
    const session = (await program.sessions()).find((s) => s.spec.mounts?.[0]?.folder === 'churn' && s.agent === 'lab')
    await program.status(session?.id ?? '', 'RUNNING')
    if (session) expect(await inSession(program, session, 'ls churn')).toContain('customers.csv')
  })

  it('resumes a copy after a cut, shows how far it is, and continues one that was cancelled', async () => {
    const dir = join(program.disk, 'scratch', 'large')
    mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, 'noise.bin'), Buffer.alloc(large, 7))
    await program.call('POST', '/folders', { name: 'large', agent: 'workstation', path: '/scratch/large' })
    const copies = async () =>
      (await program.call<Operation[]>('GET', '/operations')).filter(
        (o) => o.kind === 'file-copy' && o.folder === 'large',
      )
    const page = await open()
    await machine(page, 'lab')
    await page.getByRole('textbox', { name: 'Search folders' }).fill('large')
    await tick(page, 'large · workstation').check()
    await page.getByRole('button', { name: /^Copy it to lab/ }).click()
    await eventually('bytes are on the way', async () => (await copies())[0]?.progress)
    await program.call('PUT', '/demo/lid', { closed: true })
    const progress = page.getByRole('region', { name: 'Copy large to lab' })
    await page.getByText('lab cannot be reached. The copy continues automatically.').waitFor()
    await page.getByRole('columnheader', { name: 'Machine' }).waitFor()
    await picture(page, 'launcher-copying')
    await progress.getByRole('button', { name: 'Cancel' }).click()
    await eventually('it is cancelled', async () => (await copies())[0]?.state === 'cancelled')
    await program.call('PUT', '/demo/lid', { closed: false })
    await page.getByRole('button', { name: /^(Continue the copy|Copy it) to lab/ }).click()
    await page.getByText('It has large.').waitFor()
    expect((await copies())[0]?.state).toBe('done')
    expect(await content((await on('lab', 'large'))?.id ?? '')).toEqual([`noise.bin ${large}`])
  })

  it('that has the devices is offered where the chosen one has too few', async () => {
    const page = await open()
    await page.getByRole('textbox', { name: 'Search folders' }).fill('results')
    await tick(page, 'results · workstation').check()
    await step(page, 'environment').click()
    await askFor(page, 'Whole GPUs')
    await page.getByRole('spinbutton', { name: 'Whole GPUs' }).fill('4')
    await page.getByText(/Folders that are not there can be copied in Data & storage\.$/).waitFor()
    await page.getByRole('button', { name: 'Run on lab' }).click()
    await step(page, 'storage').click()
    await page.getByRole('button', { name: /^Copy it to lab/ }).waitFor()
  })

  it('is named in cp, which copies from one machine to another', async () => {
    await program.cli('cp', '-r', 'folder:results@workstation', 'folder:outcome@lab')
    const there = await on('lab', 'outcome')
    expect(await content(there?.id ?? '')).toEqual(await content((await on('workstation', 'results'))?.id ?? ''))
    await program.cli('cp', 'folder:churn@workstation/customers.csv', 'folder:outcome@lab/')
    expect((await content(there?.id ?? '')).some((file) => file.startsWith('customers.csv '))).toBe(true)
    await expect(program.cli('cp', '-r', 'folder:churn@workstation', 'folder:nowhere')).rejects.toThrow('nowhere')
  })
})
