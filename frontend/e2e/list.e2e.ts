import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { enter, launch, row, type Wish } from './launcherPage'
import { DemoProgram, eventually } from './program'

// The list of sessions where no container is looked into: from where one launches, what can be chosen, what a row
// tells.
const program = new DemoProgram('workstation')
const image = 'python:3.12'
const browser = new Browser()

stage(program, browser, { afresh: true })

const finished = (page: Page) => page.getByText('Finished', { exact: true }).click()
const column = async (page: Page, name: string) => {
  await page.getByRole('button', { name: 'Choose columns' }).click()
  await page.getByRole('checkbox', { name }).check()
  // All that can be chosen is in sight.
  const box = await page.locator('.ant-popover:visible').boundingBox()
  expect((box?.y ?? -1) >= 0 && (box?.y ?? 0) + (box?.height ?? 9999) <= 800).toBe(true)
  await picture(page, 'sessions-columns')
  await escape(page, '.ant-popover')
  await page.getByRole('columnheader', { name }).waitFor()
}

/** Begins a launch by the palette, whose first entry is the one that is meant once the words have been heard. */
async function byPalette(page: Page): Promise<void> {
  await page.getByText('Connected').waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog').getByRole('combobox').fill('new session')
  await page.getByRole('option', { selected: true }).getByText('New session').waitFor()
  await page.keyboard.press('Enter')
}

// Section 12, "Session creation / list", of it 1, 2 creation from anywhere · 8 what has ended is not chosen · 12
// dependencies.
// The rest is in sessions.e2e.ts (3 to 7, 10), launcher.e2e.ts (9) and folders.e2e.ts (11).
describe('a session is created', () => {
  const wishes: Wish[] = [
    { name: 'interactive-one', image, memory: 256 },
    { name: 'batch-one', image, memory: 256, type: 'Batch', command: 'sleep 900' },
  ]
  const starts: [string, string, (page: Page) => Promise<unknown>][] = [
    ['the empty list', '/sessions', (page) => page.getByRole('button', { name: 'Launch a session' }).click()],
    [
      'the header of any page',
      '/gpus',
      (page) => page.getByRole('button', { name: 'New session', exact: true }).click(),
    ],
    [
      'the rail',
      '/usage',
      (page) => page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Launcher' }).click(),
    ],
    ['the keyboard', '/sessions', byPalette],
  ]
  it.each(starts)('from %s, interactive or batch', async (_, path, start) => {
    for (const wish of wishes) {
      const page = await browser.page(program, path)
      await start(page)
      await page.waitForURL('**/launcher**')
      await enter(page, wish)
      await launch(page)
      await row(page, wish.name ?? '')
        .getByText('Running')
        .waitFor()
      await browser.clear()
      await program.endAll()
    }
  })
})

describe('the list', () => {
  it('lets nothing be chosen that has ended, and forgets what was chosen when it ends', async () => {
    const first = await program.running({ name: 'first-of-two', image })
    await program.running({ name: 'second-of-two', image })
    const page = await browser.page(program)
    await row(page, 'first-of-two').getByRole('checkbox').check()
    await row(page, 'second-of-two').getByRole('checkbox').check()
    await page.getByText('2 sessions selected').waitFor()
    await program.call('POST', `/sessions/${first.id}/terminate`, { forced: true })
    await page.getByText('1 session selected').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await finished(page)
    await row(page, 'first-of-two').waitFor()
    expect(await page.locator('[data-row-key] input[type=checkbox], thead input[type=checkbox]').count()).toBe(0)
  })

  it('ends several at once after one question, and a cancelled question ends none', async () => {
    for (const name of ['one-of-three', 'two-of-three', 'three-of-three']) await program.running({ name, image })
    const page = await browser.page(program)
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    const bar = page.getByText('3 sessions selected').locator('..')
    const dialog = page.getByRole('dialog', { name: 'Terminate 3 sessions?' })
    await bar.getByRole('button', { name: 'Terminate' }).click()
    await dialog.getByText('one-of-three').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await program.sessions()).filter((s) => s.status === 'RUNNING')).toHaveLength(3)
    await bar.getByRole('button', { name: 'Terminate' }).click()
    await dialog.getByRole('button', { name: 'Terminate' }).click()
    await page.getByText('No running sessions').waitFor()
    const ended = (await program.sessions()).filter((s) => s.name.endsWith('-of-three'))
    expect(ended.map((s) => s.reason)).toEqual(Array(3).fill('user-requested'))
  })

  it('names in a column which session waits for which', async () => {
    const prepare = await program.running({ name: 'prepare-data', image, type: 'batch', command: 'sleep 900' })
    await program.launch({ name: 'train-model', image, after: [prepare.id] })
    const page = await browser.page(program)
    await column(page, 'Dependencies')
    await row(page, 'train-model')
      .getByRole('img', { name: 'Waits for', exact: true })
      .locator('..')
      .getByText('prepare-data')
      .waitFor()
    await row(page, 'prepare-data')
      .getByRole('img', { name: 'Required by' })
      .locator('..')
      .getByText('train-model')
      .waitFor()
    await picture(page, 'sessions-dependencies')
    // In the drawer each of them leads to the other.
    await row(page, 'train-model').getByRole('link', { name: 'train-model' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'prepare-data' }).click()
    await page.waitForURL(`**/sessions/${prepare.id}**`)
    await page.getByRole('dialog').getByRole('button', { name: 'train-model' }).waitFor()
    await page.reload()
    await page.getByRole('columnheader', { name: 'Dependencies' }).waitFor()
  })

  it('is filtered by properties, sorted by a header, and keeps both in its address', async () => {
    await program.running({ name: 'alpha-run', image })
    await program.running({ name: 'beta-run', image, type: 'batch', command: 'sleep 900' })
    const page = await browser.page(program)
    const shown = () => page.locator('[data-row-key] a').allInnerTexts()
    await page.getByRole('columnheader', { name: 'Name' }).click()
    await eventually('it is in order', async () => (await shown()).join() === 'alpha-run,beta-run')
    await page.getByRole('columnheader', { name: 'Name' }).click()
    await eventually('it is turned round', async () => (await shown()).join() === 'beta-run,alpha-run')
    await page.getByRole('combobox', { name: 'Filter sessions' }).fill('type:batch')
    await eventually('the other is left out', async () => (await shown()).join() === 'beta-run')
    await page.reload()
    await eventually('it is as it was', async () => (await shown()).join() === 'beta-run')
    await page.getByRole('combobox', { name: 'Filter sessions' }).fill('-type:batch')
    await eventually('the one is left out', async () => (await shown()).join() === 'alpha-run')
  })

  it('keeps its order under a filter, and says what a filter names that there is not', async () => {
    for (const name of ['run-a', 'run-b', 'other-c']) await program.running({ name, image })
    const page = await browser.page(program)
    const shown = async () => (await page.locator('[data-row-key] a').allInnerTexts()).join()
    const filter = page.getByRole('combobox', { name: 'Filter sessions' })
    await page.getByRole('columnheader', { name: 'Name' }).click()
    await filter.fill('run-')
    await eventually('it is filtered and in order', async () => (await shown()) === 'run-a,run-b')
    await filter.fill('run- status:runing')
    await page.getByText('There is no status “runing”.').waitFor()
    await picture(page, 'sessions-unknown-status')
    await page.getByRole('button', { name: 'Use status:running' }).click()
    await eventually('the nearest is taken', async () => (await shown()) === 'run-a,run-b')
    expect(await filter.inputValue()).toBe('run- status:running')
    // A view keeps the filter under a name.
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByRole('textbox', { name: 'Name of this view' }).fill('Runs')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Waiting', exact: true }).click()
    await page.getByText('No sessions match').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByRole('button', { name: 'Runs', exact: true }).click()
    await eventually('the view is back', async () => (await shown()) === 'run-a,run-b')
  })

  it('leaves the screen to its rows: a folded summary, low rows, and name and actions in view', async () => {
    await program.running({ name: 'in-view', image })
    const page = await browser.page(program)
    await row(page, 'in-view').getByText('Running').waitFor()
    const top = async () => (await page.locator('[data-tour="list"]').boundingBox())?.y ?? 9999
    const before = await top()
    await page.getByRole('button', { name: 'Fold the summary' }).click()
    await page.getByRole('button', { name: 'Rows and grouping' }).click()
    await page.getByRole('radiogroup', { name: 'Rows', exact: true }).getByText('Dense').click()
    await escape(page, '.ant-popover')
    await page.reload()
    await page.getByRole('region', { name: 'Free resources' }).waitFor()
    await row(page, 'in-view').waitFor()
    expect(await top()).toBeLessThan(Math.min(before, 130))
    expect((await row(page, 'in-view').boundingBox())?.height).toBe(28)
    // More columns than there is room for: the table scrolls, and what one acts on stays.
    await page.getByRole('button', { name: 'Choose columns' }).click()
    for (const name of ['Environment', 'Image', 'Usage', 'Created', 'Folders'])
      await page.getByRole('checkbox', { name, exact: true }).check()
    await escape(page, '.ant-popover')
    await page.getByRole('columnheader', { name: 'Folders' }).waitFor({ state: 'attached' })
    const terminal = row(page, 'in-view').getByRole('button', { name: 'Terminal' })
    const right = async () => ((await terminal.boundingBox())?.x ?? 9999) < 1280
    expect(await right()).toBe(true)
    await row(page, 'in-view').hover()
    await page.mouse.wheel(600, 0)
    const link = row(page, 'in-view').getByRole('link', { name: 'in-view' })
    await eventually('the other columns have moved', async () => {
      const status = await row(page, 'in-view').getByText('Running').boundingBox()
      const name = await link.boundingBox()
      return status !== null && name !== null && status.x < name.x
    })
    expect(((await link.boundingBox())?.x ?? 0) > 200 && (await right())).toBe(true)
    await picture(page, 'sessions-dense')
  })
})
