import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import type { Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { faultyDrafts } from './launcherFaults'
import { enter, enterMemory, launch, row, step } from './launcherPage'
import { DemoProgram, eventually } from './program'

// No container is looked into here, so it runs on the simulated engine.
const program = new DemoProgram('workstation')
const browser = new Browser()
const image = 'python:3.12'

stage(program, browser, { afresh: true })

const open = (query = '') => browser.page(program, `/launcher${query}`)
const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()
const draft = (value: unknown) => `draft=${encodeURIComponent(JSON.stringify(value))}`
const launchButton = (page: Page) => page.getByRole('button', { name: 'Launch', exact: true })
const mayLaunch = (page: Page) => eventually('it may be launched', () => launchButton(page).isEnabled())
const mayNotLaunch = (page: Page) => eventually('it may not be launched', () => launchButton(page).isDisabled())

describe('the launcher', () => {
  it('takes its steps in any order and judges them together', async () => {
    const page = await open()
    await step(page, 'network').click()
    await page.getByLabel('Preopened ports').fill('80')
    await page.keyboard.press('Enter')
    await says(page, '80 is outside the range 1024 to 65535.')
    await step(page, 'type').click()
    await page.getByText('Runs one command, then ends.').click()
    await page.getByLabel('Name', { exact: true }).fill('ab')
    await says(page, 'A name needs at least 4 characters.')
    await page.getByRole('button', { name: 'Skip to review' }).click()
    await says(page, 'Enter the command to run.')
    const bad = () =>
      page.locator('button[data-bad="true"]').evaluateAll((all) => all.map((b) => b.getAttribute('data-step')).join())
    await eventually('two steps are wrong', async () => (await bad()) === 'type,network')
    await mayNotLaunch(page)
    await picture(page, 'launcher-errors')
    await page.getByRole('button', { name: 'Edit Type & machine' }).click()
    await page.getByLabel('Name', { exact: true }).fill('abcd')
    await page.getByLabel('Startup command').fill('true')
    await step(page, 'network').click()
    await page.locator('[data-bad="true"] .ant-tag-close-icon').click()
    await step(page, 'confirm').click()
    await mayLaunch(page)
  })

  it('keeps its draft over a reload, but never the value of a secret', async () => {
    const page = await open()
    await enter(page, {
      name: 'kept-draft',
      image,
      cpu: 1,
      memory: 640,
      env: { EPOCHS: '3', HF_TOKEN: 'geheim' },
      ports: '8080',
    })
    await eventually(
      'the draft is in the address',
      async () => page.url().includes('kept-draft') && page.url().includes('8080'),
    )
    expect(decodeURIComponent(page.url())).not.toContain('geheim')
    await page.reload()
    await says(page, 'kept-draft')
    await says(page, '640 MiB')
    await says(page, 'Enter a value. Secrets are not saved.')
    await mayNotLaunch(page)
    await page.getByRole('button', { name: 'Edit Environment & resources' }).click()
    expect(await page.getByLabel('Variable 1: value').inputValue()).toBe('3')
    expect(await page.getByLabel('Variable 2: value').inputValue()).toBe('')
  })

  it('takes pasted variables apart, and lets no value of theirs into the address', async () => {
    const page = await open('?step=environment')
    await page.getByRole('button', { name: 'Add a variable' }).click()
    await page.evaluate(() => navigator.clipboard.writeText('# model\nexport EPOCHS="3"\nHF_TOKEN=geheim # mine\n'))
    await page.getByLabel('Variable 1: name').focus()
    await page.keyboard.press('Control+v')
    await page.getByLabel('Variable 2: name').waitFor()
    const row = async (number: number) => [
      await page.getByLabel(`Variable ${number}: name`).inputValue(),
      await page.getByLabel(`Variable ${number}: value`).inputValue(),
    ]
    expect([await row(1), await row(2)]).toEqual([
      ['EPOCHS', '3'],
      ['HF_TOKEN', 'geheim'],
    ])
    await page.getByRole('button', { name: 'Add a variable' }).click()
    await page.getByLabel('Variable 3: name').fill('no name geheim')
    await page.getByLabel('Variable 3: value').fill('geheim')
    await eventually('the names are in the address', async () => page.url().includes('HF_TOKEN'))
    await says(page, /cannot start with a digit/)
    await picture(page, 'launcher-variables')
    expect(decodeURIComponent(page.url())).not.toContain('geheim')
    expect(decodeURIComponent(page.url())).not.toContain('"3"')
  })

  it('asks before it clears every entry', async () => {
    const page = await open()
    await page.getByLabel('Name', { exact: true }).fill('soon-gone')
    const reset = page.locator('#content').getByRole('button', { name: 'Reset' })
    await reset.click()
    await page.getByRole('button', { name: 'Keep' }).click()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('soon-gone')
    await reset.click()
    await page.getByRole('tooltip').getByRole('button', { name: 'Reset' }).click()
    await eventually(
      'the name is empty',
      async () => (await page.getByLabel('Name', { exact: true }).inputValue()) === '',
    )
    await eventually('it left the address', async () => !page.url().includes('soon-gone'))
  })

  it('refuses names while they are typed', async () => {
    const page = await open()
    for (const [name, text] of [
      ['abc', 'A name needs at least 4 characters.'],
      ['x'.repeat(65), 'A name can have at most 64 characters.'],
      ['-abcd', /^A name must start with/],
      ['abcd.', /^A name must end with/],
      ['ab cd', /^A name can contain only letters/],
      ['세션이름', /^A name must start with/],
    ] as const) {
      await page.getByLabel('Name', { exact: true }).fill(name)
      await says(page, text)
    }
  })

  it('knows while typing that a name is taken', async () => {
    const page = await open()
    await enter(page, { name: 'only-once', image, memory: 128 })
    await launch(page)
    await row(page, 'only-once').getByText('Running').waitFor()
    await page.goto(`${program.url}/launcher`)
    await page.getByLabel('Name', { exact: true }).fill('only-once')
    await says(page, 'A live session is already named only-once.')
  })

  it.each(faultyDrafts)('refuses %j', async (value, ...faults) => {
    const page = await open(`?step=confirm&${draft({ image, ...value })}`)
    for (const fault of faults) await says(page, fault)
    await mayNotLaunch(page)
  })

  it('turns a start time red when its moment passes', async () => {
    const hour = 3_600_000
    const page = await open(
      `?step=type&${draft({ type: 'batch', command: 'true', startAt: new Date(Date.now() + hour).toISOString() })}`,
    )
    await says(page, /^Starts in an hour/)
    // The clock of the page goes on by an hour; waiting for a near moment would race the loading of the page.
    await page.evaluate((passed) => {
      const now = Date.now.bind(Date)
      Date.now = () => now() + passed
    }, hour)
    await says(page, 'The start time must be in the future.')
  })

  it('fills a preset in and turns to Custom when a number is changed', async () => {
    const page = await open('?step=environment')
    const preset = page.getByRole('combobox', { name: 'Preset' })
    const shown = () => page.locator('.ant-select', { has: preset }).innerText()
    const before = await eventually('the presets are there', async () => {
      const now = await shown()
      return !now.includes('Custom') && now
    })
    await enterMemory(page, 333)
    await eventually('it is Custom', async () => (await shown()).includes('Custom'))
    await enterMemory(page, 2048)
    await eventually('it is the preset again, whatever the unit', async () => (await shown()) === before)
  })

  it('carries custom amounts to the review, each and in total, and warns of a cluster that does not fit', async () => {
    const page = await open(`?step=environment&${draft({ image, cpu: 1 })}`)
    await enterMemory(page, 333)
    const size = page.getByRole('spinbutton', { name: 'Containers per session (cluster)' })
    await says(page, 'One container, main1.')
    await size.fill('3')
    await says(page, /^main1 to sub2 on one machine/)
    await step(page, 'confirm').click()
    const total = page.getByRole('group', { name: 'Total allocation' })
    await total.getByText('1 × 3 containers · each 1 CPU, 333 MiB').waitFor()
    await total.getByText('999 MiB', { exact: true }).waitFor()
    await step(page, 'environment').click()
    const cpus = (await program.machines())[0]?.cpus ?? 0
    await page.getByRole('spinbutton', { name: 'CPU' }).fill(String(cpus))
    const warning = page.getByText(/^1 of 3 containers fit/)
    await warning.waitFor()
    await size.fill('1')
    await says(page, 'One container, main1.')
    await warning.waitFor({ state: 'detached' })
  })

  it('mounts folders that are ticked, found or made in the table, and shows what is in them', async () => {
    const page = await open('?step=storage')
    const others = (await program.call<Folder[]>('GET', '/folders')).filter((f) => !f.auto).length
    const make = async (name: string) => {
      await page.getByRole('button', { name: 'New folder' }).click()
      await page.getByRole('textbox', { name: 'Name of the new folder' }).fill(name)
      await page.keyboard.press('Enter')
    }
    const box = (name: string) => page.getByRole('checkbox', { name: `Mount ${name}`, exact: true })
    const ticked = (name: string) => eventually(`${name} is ticked`, () => box(name).isChecked())
    await make('made-here')
    await ticked('made-here')
    await make('made-here')
    await page.getByRole('alert').getByText('A folder with this name already exists.').waitFor()
    await page.keyboard.press('Escape')
    for (let n = 0; n < 9; n++) await program.call('POST', '/folders', { name: `other-${n}` })
    await page.getByRole('button', { name: 'Refresh' }).click()
    await says(page, `${others + 10} folders`)
    expect(await box('other-8').count()).toBe(0)
    await page.getByRole('textbox', { name: 'Search folders' }).fill('r-8')
    await box('made-here').waitFor({ state: 'detached' })
    // By the keyboard alone.
    await box('other-8').focus()
    await page.keyboard.press('Space')
    await page.getByLabel('Directory 2: path in the session').fill('data')
    await page.getByRole('checkbox', { name: 'Directory 2: read-only' }).check()
    await picture(page, 'launcher-folders')
    await page.getByRole('button', { name: 'Files of other-8' }).click()
    const files = page.getByRole('dialog', { name: 'other-8' })
    await files.getByRole('navigation', { name: 'Path' }).waitFor()
    await escape(page)
    await files.waitFor({ state: 'hidden' })
    await page.getByRole('textbox', { name: 'Search folders' }).fill('')
    await box('made-here').uncheck()
    await step(page, 'confirm').click()
    await page.getByText('/home/work/data', { exact: true }).waitFor()
    await page.getByText('other-8', { exact: true }).waitFor()
    expect(await page.getByText('/home/work/made-here', { exact: true }).count()).toBe(0)
  })

  it('launches an administrator session, which has no folders', async () => {
    const page = await open(`?step=environment&${draft({ image, name: 'system', mounts: [['', 'x', 0, 'sets', '']] })}`)
    await page.getByRole('checkbox', { name: /^Be root in the session/ }).check()
    await says(page, 'An administrator session has no folders, because root in it could change their files.')
    await picture(page, 'launcher-admin')
    await step(page, 'storage').click()
    await page.getByRole('button', { name: /^Remove/ }).click()
    await says(page, 'An administrator session has no folders, because root in it could change or read')
    await step(page, 'confirm').click()
    await says(page, 'root in the container, without folders')
    await says(page, /^slipway run .*--admin/)
    await launch(page)
    await row(page, 'system').getByText('Running').waitFor()
    await row(page, 'system').getByRole('link', { name: 'system' }).click()
    await says(page, 'Root in the container, without folders')
    const made = (await program.sessions()).find((s) => s.name === 'system')
    expect(made?.folders).toEqual([])
  })

  it('maps what the server finds wrong to the field', async () => {
    const page = await open(`?step=storage&${draft({ image, mounts: [['/no/such/directory', '', 0]] })}`)
    const line = page.getByRole('alert').filter({ hasText: '/no/such/directory' })
    await line.first().waitFor()
    await page.locator('button[data-step="storage"][data-bad="true"]').waitFor()
    await picture(page, 'launcher-server-error')
  })

  it('chooses a directory of the machine', async () => {
    const page = await open('?step=storage')
    await page.getByRole('button', { name: 'Choose a directory…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Choose a directory' })
    await dialog.getByRole('button', { name: 'projects', exact: true }).waitFor() // of the person's home
    await dialog.getByLabel('Path').fill('/data')
    await dialog.getByLabel('Path').press('Enter')
    await dialog.getByRole('button', { name: 'imagenet-mini', exact: true }).click()
    await eventually(
      'it is inside',
      async () => (await dialog.getByLabel('Path').inputValue()) === '/data/imagenet-mini',
    )
    await picture(page, 'launcher-directories')
    await dialog.getByRole('button', { name: 'Use this directory' }).click()
    expect(await page.getByLabel('Directory 1: path on the machine').inputValue()).toBe('/data/imagenet-mini')
    expect(await page.getByLabel('Directory 1: path in the session').getAttribute('placeholder')).toBe(
      '/home/work/imagenet-mini',
    )
  })

  it('starts from the launch history at Confirm, with a free name', async () => {
    const page = await open()
    await enter(page, { name: 'again-and-again', image, memory: 192, env: { EPOCHS: '7' }, ports: '7777' })
    await launch(page)
    await row(page, 'again-and-again').waitFor()
    const recent = await eventually('it is in the history', async () =>
      (await program.recents()).find((r) => r.spec.name === 'again-and-again'),
    )
    await page.goto(`${program.url}/launcher?recent=${recent.id}&step=confirm`)
    await says(page, /^again-and-again-\w{4}$/)
    await says(page, '192 MiB')
    await says(page, 'EPOCHS=7')
    await says(page, '7777')
    await launch(page)
    await row(page, /^again-and-again-\w{4}$/).waitFor()
  })

  it('asks where it stays: nothing that can be pressed moves while it appears', async () => {
    const page = await open(`?step=confirm&${draft({ image, name: 'asked-in-place', memory: '128m' })}`)
    await mayLaunch(page)
    // A person's press, so that the question knows where it comes from.
    await page.evaluate(() => {
      const places = new Set<string>()
      Object.assign(window, { places })
      const look = () => {
        const box = document.querySelector('[role="dialog"] .ant-btn-primary')?.getBoundingClientRect()
        if (box?.width) places.add([box.x, box.y, box.width].map(Math.round).join(' '))
        requestAnimationFrame(look)
      }
      look()
    })
    await launchButton(page).click()
    const question = page.locator('.ant-modal-confirm')
    await question.waitFor()
    await eventually('the question has appeared', () =>
      question.evaluate((box) => !box.className.includes('ant-zoom-')),
    )
    expect(await page.evaluate(() => [...(window as unknown as { places: Set<string> }).places])).toHaveLength(1)
  })

  it('launches once, however often the button is pressed', async () => {
    const page = await open(`?step=confirm&${draft({ image, name: 'pressed-twice', memory: '128m' })}`)
    await mayLaunch(page)
    await launchButton(page).click()
    await page
      .getByRole('dialog', { name: 'Launch without a folder?' })
      .getByRole('button', { name: 'Launch' })
      .dblclick()
    await page.waitForURL('**/sessions')
    await row(page, 'pressed-twice').waitFor()
    expect((await program.sessions()).filter((s) => s.name.startsWith('pressed-twice'))).toHaveLength(1)
  })
})
