import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Session } from '@/api/types.gen'
import { Browser, download, picture } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { askFor, choose, launch, row } from './launcherPage'
import { DemoProgram, eventually } from './program'
import { ShellPage, Wire } from './shellPage'

// The simulated machine has 16 CPUs, 64 GiB and two devices. The queue, the books and the page are the real ones.
const program = new DemoProgram('workstation')
const image = 'python:3.12'
const GIB = 1024 ** 3
const browser = new Browser()

stage(program, browser, { afresh: true })

const small = { cpu: 1, memory: GIB }
const runs = (name: string, more: Parameters<typeof program.launch>[0] = {}) =>
  program.running({ name, image, resources: small, ...more })
const waits = (name: string, more: Parameters<typeof program.launch>[0] = {}) =>
  program.launch({ name, image, resources: small, ...more })
const named = async (name: string): Promise<Session> => {
  const found = (await program.sessions()).find((s) => s.name === name)
  if (!found) throw new Error(`there is no ${name}`)
  return found
}
const reads = (field: Locator, value: string) =>
  eventually(`the field reads ${value}`, async () => (await field.inputValue()) === value)
const review = (page: Page) => page.locator('button[data-step="confirm"]').click()
const idle = (page: Page, name: string) => row(page, name).getByRole('button', { name: 'Idle checks' })

describe('devices', () => {
  it('are shared: two halves run on one, a third waits with the reason in numbers, and starts by itself', async () => {
    await runs('all-of-it', { accelerator: { devices: 1 } })
    const first = await runs('half-one', { accelerator: { shares: 500 } })
    await runs('half-two', { accelerator: { shares: 500 } })
    const page = await browser.page(program, '/launcher?step=environment')
    await askFor(page, 'Share')
    const outlook = page.locator('[data-outlook="slow"]')
    await outlook.getByText(/^Needs 0\.5 of one of 2 GPUs on \S+\.$/).waitFor()
    await outlook.getByText('Who has what').click()
    await outlook.getByText(/half-one has 0\.5 \([0-9.]+ GiB\)/).waitFor()
    await page.getByText('At most 0 of one GPU is free.').waitFor()
    await picture(page, 'share-waits')
    await page.locator('button[data-step="type"]').click()
    await page.getByLabel('Name', { exact: true }).fill('half-three')
    await review(page)
    await launch(page)
    await row(page, 'half-three')
      .getByText(/^#1 on \S+$/)
      .waitFor()
    await row(page, 'half-three').getByText('Start: unknown').waitFor()
    await row(page, 'half-three')
      .getByText(/^Needs 0\.5 of one of 2 GPUs on \S+\.$/)
      .waitFor()
    await picture(page, 'sessions-queue')
    await program.call('POST', `/sessions/${first.id}/terminate`, { forced: true })
    await row(page, 'half-three').getByText('Running').waitFor()
    expect((await program.status((await named('half-three')).id, 'RUNNING')).grants.gpus).toMatchObject([
      { share: 500 },
    ])
    await page.goto(`${program.url}/gpus`)
    await page
      .getByRole('article', { name: /^GPU [01],/ })
      .filter({ hasText: 'half-three' })
      .getByRole('button', { name: 'half-three' })
      .waitFor()
    await page.getByText('0 of 1').first().waitFor()
    await picture(page, 'gpus-full')
  })

  it('are previewed with where a launch lands and how it is kept, and never give less unasked', async () => {
    const page = await browser.page(program, '/launcher?step=environment')
    const map = page.getByRole('list', { name: 'Placement preview' })
    await askFor(page, 'Share')
    await map.locator('[data-landing=true]').getByText('placed here: 0.5').waitFor()
    await page.locator('[data-level=watched]').waitFor()
    await page.getByRole('spinbutton', { name: 'Share' }).fill('0.25')
    await page.getByRole('button', { name: 'Use 0.2' }).click()
    await map.getByText('placed here: 0.2').waitFor()
    await reads(page.getByRole('spinbutton', { name: 'Share' }), '0.2')
    await askFor(page, 'VRAM')
    await page.locator('[data-landing=true]').waitFor()
    await askFor(page, 'Whole GPUs')
    await map.getByText('placed here: 1').waitFor()
    await page.locator('[data-level=whole]').waitFor()
    await eventually('no profile is offered', () => page.getByRole('radio', { name: 'MIG' }).isDisabled())
    await askFor(page, 'None')
    await map.waitFor({ state: 'detached' })
  })

  it('are accounted for by session, and the books go out as CSV', async () => {
    const session = await runs('counted', { accelerator: { shares: 300 }, label: 'thesis' })
    const page = await browser.page(program, '/usage')
    await eventually('its use is in the books', async () => {
      const report = await program.call<{ rows: { session?: string; allocGpuMs: number }[] }>(
        'GET',
        '/usage?by=session',
      )
      return report.rows.some((r) => r.session === session.id && r.allocGpuMs > 0)
    })
    await page.reload()
    await page.getByRole('button', { name: 'counted' }).waitFor()
    await page.getByText('thesis', { exact: true }).waitFor()
    await picture(page, 'usage')
    const usage = await download(page, () => page.getByRole('button', { name: 'CSV' }).click())
    expect(usage.name).toMatch(/^slipway-usage-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
    expect(usage.text.split('\n').filter((line) => line.includes('counted')).length).toBeGreaterThan(0)
    await page.getByText('Label', { exact: true }).click()
    await page.getByRole('cell', { name: 'thesis' }).waitFor()
    await page.goto(`${program.url}/sessions`)
    await row(page, 'counted').waitFor()
    const list = await download(page, () => page.getByRole('button', { name: 'Export as CSV' }).click())
    expect(list.text).toMatch(/\bcounted,interactive,RUNNING,.*,0\.3,/)
  })
})

describe('the queue', () => {
  it('offers what helps a session that waits: to ask for less, and a reminder of its start', async () => {
    const first = await runs('has-most', { accelerator: { shares: 700 } })
    await runs('has-the-other', { accelerator: { devices: 1 } })
    const session = await waits('wants-half', { accelerator: { shares: 500 } })
    await waits('wants-one', { accelerator: { devices: 1 } })
    const page = await browser.page(program, `/sessions/${session.id}`)
    const dialog = page.getByRole('dialog', { name: 'wants-half' })
    await dialog.getByRole('button', { name: 'Remind me' }).click()
    await dialog.getByRole('button', { name: 'Reminder set', pressed: true }).waitFor()
    await dialog.getByRole('button', { name: 'Use a smaller share' }).click()
    await picture(page, 'wait-help')
    await page.getByRole('button', { name: '0.1 GPU free now' }).click()
    await dialog.getByText('Running').first().waitFor()
    const started = await program.session(session.id)
    expect([started.grants.gpus[0]?.share, started.spec.accelerator]).toEqual([100, { shares: 100 }])
    await eventually('the reminder is over', async () => !(await program.session(session.id)).reminder)
    await program.call('POST', `/sessions/${first.id}/terminate`, { forced: true })
    expect(await program.cli('resize', 'wants-one', '0.5')).toContain('wants-one asks for 1 CPU, 1 GiB, 0.5 GPU.')
    await eventually('it starts with less', async () => (await named('wants-one')).status === 'RUNNING')
  })

  it('is reordered by a priority, one by one and in bulk', async () => {
    await runs('holds-all-cpus', { resources: { cpu: 16, memory: GIB } })
    for (const name of ['came-first', 'came-second', 'came-third']) await waits(name)
    const page = await browser.page(program)
    const place = (name: string, n: number) => row(page, name).getByText(`#${n} on `).waitFor()
    await place('came-third', 3)
    await row(page, 'came-third').getByRole('checkbox').check()
    await row(page, 'came-second').getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Priority of 2 waiting' }).click()
    await page.getByRole('spinbutton', { name: 'Priority' }).fill('50')
    await page.getByRole('button', { name: 'Set' }).click()
    await place('came-second', 1)
    await place('came-third', 2)
    await place('came-first', 3)
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('button', { name: 'Choose columns' }).click()
    await page.getByRole('checkbox', { name: 'Priority' }).check()
    await escape(page, '.ant-popover')
    await row(page, 'came-first').getByRole('button', { name: 'Change the priority of came-first' }).click()
    await page.getByRole('spinbutton', { name: 'Priority' }).fill('80')
    await page.keyboard.press('Enter')
    await place('came-first', 1)
    await eventually('its priority is stored', async () => (await named('came-first')).priority === 80)
  })

  it('cancels who waits for a session that did not succeed, and says so', async () => {
    const parent = await runs('prepare', { type: 'batch', command: 'sleep 900' })
    const page = await browser.page(program, '/launcher')
    await page.getByLabel('Name', { exact: true }).fill('then-train')
    await choose(page, 'Start after', 'prepare')
    await page.keyboard.press('Escape')
    await review(page)
    await page.getByText('after prepare').waitFor()
    await launch(page)
    await row(page, 'then-train')
      .getByText(/prepare/)
      .waitFor()
    await program.call('POST', `/sessions/${parent.id}/terminate`, { forced: true })
    await page.getByText('Finished', { exact: true }).click()
    await row(page, 'then-train').getByText('Cancelled').waitFor()
    await row(page, 'then-train').getByText('A session it depends on').waitFor()
    expect((await named('then-train')).reason).toBe('dependency-failed')
  })

  it('takes several at once, each counted with what it is asked for', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByLabel('Name', { exact: true }).fill('sweep')
    await page.locator('button[data-step="environment"]').click()
    await page.getByRole('spinbutton', { name: 'Sessions at once' }).fill('2')
    await page.getByRole('spinbutton', { name: 'Containers per session' }).fill('2')
    await review(page)
    await page.getByRole('group', { name: 'Total allocation' }).getByText('2 × 2 containers').waitFor()
    await picture(page, 'confirm-several')
    await page.getByRole('button', { name: 'Launch 2' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Launch' }).click()
    await page.waitForURL('**/sessions')
    for (const name of ['sweep-1', 'sweep-2']) await row(page, name).getByText('2/2').waitFor()
  })
})

describe('a cluster', () => {
  it('tells which containers run, and opens a terminal in any of them', async () => {
    const session = await runs('pair', { cluster: 2 })
    const page = await browser.page(program)
    await row(page, 'pair').getByRole('img', { name: '2 of 2 containers running' }).hover()
    await page.locator('.ant-popover:visible').getByText('sub1').waitFor()
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}`)
    await page.getByRole('button', { name: 'Terminal in sub1' }).click()
    await page.waitForURL(/\/terminal/) // the address says which kernel until its shell is open
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('hostname')
    expect(await shell.rows()).toMatch(/^sub1$/m)
    await picture(page, 'terminal-sub1')
  })
})

describe('idle checks', () => {
  it('count down with a legend, are tried out, and are put off by a button', async () => {
    const session = await runs('may-idle', { idle: { lifetime: '2h' } })
    const page = await browser.page(program)
    await idle(page, 'may-idle').locator('[data-tone=warn]').waitFor()
    await idle(page, 'may-idle').click()
    const popover = page.locator('.ant-popover:visible')
    await popover.getByText('What the colours mean').waitFor()
    await popover
      .locator('[data-checker=lifetime]')
      .getByText(/It has run for .* of its maximum lifetime of 2h/)
      .waitFor()
    await picture(page, 'idle-popover')
    await popover.getByRole('button', { name: 'Keep for 4 h' }).click()
    await idle(page, 'may-idle').locator('[data-tone=kept]').waitFor()
    const kept = Date.parse((await program.session(session.id)).keepUntil ?? '') - Date.now()
    expect(kept / 3_600_000).toBeGreaterThan(3.9)
    await page.goto(`${program.url}/sessions/${session.id}`)
    await page.getByRole('button', { name: 'Try other settings on this session' }).click()
    await page.getByText('It would still be running.').waitFor()
    const lifetime = page.getByRole('textbox', { name: 'Ends after' })
    await reads(lifetime, '2h')
    await lifetime.fill('soon')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('alert').getByText('soon').waitFor()
    await lifetime.fill('3h')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText('These settings would not have ended it').waitFor()
    await picture(page, 'idle-trial')
  })
})

describe('what a person sets up', () => {
  it('stays: a preset is saved, chosen, renamed and deleted', async () => {
    const page = await browser.page(program, '/launcher?step=environment')
    const cpu = page.getByRole('spinbutton', { name: 'CPU' })
    const presets = async () => (await program.call<{ name: string }[]>('GET', '/presets')).map((p) => p.name).join()
    const before = await presets()
    await cpu.fill('3')
    await page.getByRole('button', { name: 'Save as a preset' }).click()
    await page.getByRole('textbox', { name: 'Preset name' }).fill('three cores')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Save as a preset' }).waitFor({ state: 'detached' })
    await choose(page, 'Preset', 'Small')
    await reads(cpu, '1')
    await page.goto(`${program.url}/launcher?step=environment`)
    await choose(page, 'Preset', 'three cores')
    await reads(cpu, '3')
    await page.getByRole('button', { name: 'Rename or delete presets' }).click()
    await page.getByRole('textbox', { name: 'Name of preset three cores' }).fill('trio')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Name of preset trio' }).waitFor()
    await page.getByRole('button', { name: 'Delete preset trio' }).click()
    await page.getByRole('dialog', { name: 'Delete the preset trio?' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Custom', { exact: true }).waitFor()
    await eventually('the presets are as before', async () => (await presets()) === before)
  })

  it('stays: which resources the summary shows', async () => {
    const page = await browser.page(program)
    const machine = page.getByRole('region', { name: /^Resources of / })
    await machine.getByText('VRAM free').waitFor()
    await page.getByRole('button', { name: 'Choose panels' }).click()
    await page.getByRole('checkbox', { name: 'VRAM' }).uncheck()
    await machine.getByText('VRAM free').waitFor({ state: 'detached' })
    await page.reload()
    await machine.getByText('GPU free').waitFor()
    expect(await machine.getByText('VRAM free').count()).toBe(0)
    await page.getByRole('button', { name: 'Choose panels' }).click()
    await page.getByRole('button', { name: 'Reset' }).click()
    await machine.getByText('VRAM free').waitFor()
  })
})
