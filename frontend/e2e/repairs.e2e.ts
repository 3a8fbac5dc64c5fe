import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { launch, row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// What a recipe names and is not there is named, repaired by choice, and nothing else of it changes.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, {
  prepare: async () => {
    await program.call('POST', '/folders', { name: 'sets-new', agent: 'workstation' })
  },
  afresh: true,
})

const recipe = `name: from-afar
image: registry.example.com/team/gone:1
agent: lab-2
group: lab
accelerator: mig:9g.99gb
resources: {cpu: 2, memory: 1g}
env: {SEED: "7"}
mounts:
  - {folder: sets-old, readOnly: true}
  - {folder: models-old, target: models}
  - {source: /no/such/directory, target: /data}
after: [prepare-old]
ports: [8080]
label: thesis
`

async function open(text: string): Promise<Page> {
  const path = join(program.home, 'recipe.yaml')
  writeFileSync(path, text)
  const page = await browser.page(program, '/launcher')
  await page.getByLabel('Recipe file').setInputFiles(path)
  await page.getByRole('heading', { name: 'Command line' }).waitFor()
  return page
}

const lack = (page: Page, field: string) => page.locator(`[data-lack="${field}"]`)

async function instead(page: Page, field: string, choice: string | RegExp): Promise<void> {
  await lack(page, field).getByRole('combobox').click()
  await page.locator('.ant-select-dropdown:visible').getByText(choice, { exact: true }).click()
}

const repaired = (page: Page, field: string) => lack(page, field).waitFor({ state: 'detached' })

describe('what is not there', () => {
  it('is named all at once, repaired by choices, and launched with the rest as it was asked', async () => {
    const page = await open(recipe)
    const fields = () =>
      page.locator('[data-lack]').evaluateAll((rows) => rows.map((r) => r.getAttribute('data-lack')).join(' '))
    await eventually(
      'all is named',
      async () =>
        (await fields()) ===
        'group agent image accelerator mounts[0].folder mounts[1].folder mounts[2].source after[0]',
    )
    await page.getByRole('heading', { name: '8 requested items are missing here' }).waitFor()
    await lack(page, 'agent').getByText('Machine lab-2 not found.').waitFor()
    await lack(page, 'mounts[0].folder').getByText('Choose a machine first.').waitFor()
    expect(await page.getByRole('button', { name: 'Launch', exact: true }).isDisabled()).toBe(true)
    await picture(page, 'launcher-lacks')

    await instead(page, 'group', 'Any group')
    await repaired(page, 'group')
    await instead(page, 'agent', 'workstation')
    await repaired(page, 'agent')
    await instead(page, 'image', /^Python · 3\.12( · Installed)?$/)
    await repaired(page, 'image')
    await instead(page, 'accelerator', '0.5 GPU (Share)')
    await repaired(page, 'accelerator')
    await instead(page, 'mounts[0].folder', 'sets-new')
    await repaired(page, 'mounts[0].folder')
    await lack(page, 'mounts[1].folder').getByRole('button', { name: 'Create the folder' }).click()
    await repaired(page, 'mounts[1].folder')
    await lack(page, 'mounts[2].source').getByRole('button', { name: 'Skip' }).click()
    await lack(page, 'after[0]').getByRole('button', { name: 'Do not wait for it' }).click()
    const done = page.getByRole('list', { name: 'Your replacements' })
    await eventually(
      'all is repaired',
      async () => (await done.getByRole('listitem').count()) === 8 && (await fields()) === '',
    )
    await picture(page, 'launcher-repaired')

    // What was left out by mistake comes back as it was.
    await done.getByRole('button', { name: 'Undo: /no/such/directory' }).click()
    await lack(page, 'mounts[2].source').getByRole('button', { name: 'Skip' }).click()
    await repaired(page, 'mounts[2].source')
    await eventually('it may be launched', () => page.getByRole('button', { name: 'Launch', exact: true }).isEnabled())
    await launch(page, true)
    await row(page, 'from-afar').waitFor()
    const session = (await program.sessions()).find((s) => s.name === 'from-afar')
    const { resources, ...spec } = (await program.session(session?.id ?? '')).spec
    expect(resources).toMatchObject({ cpu: 2, memory: 1024 ** 3 })
    expect(spec).toMatchObject({
      name: 'from-afar',
      image: 'python:3.12',
      agent: 'workstation',
      accelerator: { shares: 500 },
      env: [{ name: 'SEED', value: '7' }],
      mounts: [
        { folder: 'sets-new', target: '/home/work/sets-old', readOnly: true },
        { folder: 'models-old', target: '/home/work/models' },
      ],
      ports: [8080],
      label: 'thesis',
    })
    expect([spec.group, spec.after]).toEqual([undefined, undefined])
    expect((await program.call<{ name: string }[]>('GET', '/folders')).map((f) => f.name)).toContain('models-old')
  })

  it('is an image that only a registry can have: it is downloaded when one says so', async () => {
    const page = await open('image: registry.example.com/team/gone:1\nresources: {cpu: 1, memory: 1g}\n')
    await lack(page, 'image').getByRole('button', { name: 'Download it at launch' }).click()
    await repaired(page, 'image')
    await eventually('it may be launched', () => page.getByRole('button', { name: 'Launch', exact: true }).isEnabled())
    await page.getByRole('button', { name: 'Undo: registry.example.com/team/gone:1' }).click()
    await lack(page, 'image').waitFor()
  })
})
