import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Phase, Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { choose } from './launcherPage'
import { DemoProgram, eventually } from './program'

// The record of scheduling, a view of the session's drawer. The simulated machine has 16 CPUs,
// and its registry lacks most images, so that a pull really fails.
const program = new DemoProgram('workstation')
const image = 'python:3.12'
const browser = new Browser()

stage(program, browser, { afresh: true })

const path = (session: Session) => `/sessions/${session.id}?view=history`
const phases = (page: Page): Locator => page.locator('tbody tr:has([aria-expanded])')
const phase = (page: Page, name: string): Locator =>
  phases(page).filter({ has: page.getByRole('button', { name: new RegExp(` of ${name}$`) }) })
const names = async (page: Page) => (await phases(page).allInnerTexts()).map((text) => text.trim().split(/\s/)[0] ?? '')
const shows = (page: Page, ...wanted: string[]) =>
  eventually(`it shows ${wanted.join(', ')}`, async () => (await names(page)).join() === wanted.join())

/** A session whose image nobody has. */
async function failed(name: string): Promise<Session> {
  const { id } = await program.launch({ name, image: 'nowhere/nothing:1' })
  return program.status(id, 'ERROR')
}

/** Chooses a value of one of the filters, or takes it back, and closes its list. */
async function pick(page: Page, filter: string, value: string): Promise<void> {
  await choose(page, filter, value)
  await page.getByRole('combobox', { name: filter }).press('Escape')
}

/** The colour that a badge has, and the one that a token of the theme stands for. */
const colour = (badge: Locator, token: string) =>
  badge.evaluate((element, name) => {
    const probe = document.createElement('i')
    probe.style.color = `var(--ant-color-${name})`
    element.parentElement?.append(probe)
    const pair = [getComputedStyle(element).color, getComputedStyle(probe).color]
    probe.remove()
    return pair
  }, token)

// Section 12, "Scheduling history": 1 in reach · 2 columns · 3 closed by its button and Escape (the drawer has no
// backdrop: the list stays in use) · 4 filters · 5 taken away · 6 current and refreshed · 7 badges · 8 empty · 9
// steps, order.
describe('the record of scheduling', () => {
  it('is in reach whether a session waits, runs or failed, with its columns', async () => {
    const broken = await failed('failed-now')
    const running = await program.running({ name: 'runs-now', image, resources: { cpu: 16, memory: 1024 ** 3 } })
    const waiting = await program.launch({ name: 'waits-now', image })
    for (const session of [running, waiting, broken]) {
      const page = await browser.page(program, `/sessions/${session.id}`)
      await page.getByRole('tab', { name: 'Scheduling' }).click()
      await phase(page, 'Schedule').waitFor()
      expect(await page.locator('thead:has-text("Attempts") th').allInnerTexts()).toEqual([
        'Phase',
        'Result',
        'Status',
        'Attempts',
        'Duration',
        'Created',
        'Updated',
      ])
      await browser.clear()
    }
  })

  it('is closed by its button or Escape, and leaves nothing in the address', async () => {
    const session = await failed('closed-twice')
    for (const close of [
      (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Close' }).click(),
      (page: Page) => escape(page),
    ]) {
      const page = await browser.page(program, `/sessions/${session.id}?state=finished&view=history&h.result=FAILURE`)
      await shows(page, 'Prepare')
      await close(page)
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      expect(new URL(page.url()).search).toBe('?state=finished')
      expect(new URL(page.url()).pathname).toBe('/sessions')
    }
  })

  it('is filtered by phase, result, states, id, code and message, and each filter is taken away again', async () => {
    const session = await failed('all-filters')
    const page = await browser.page(program, path(session))
    const all = ['Schedule', 'Prepare', 'Terminate']
    await shows(page, ...all)
    for (const [filter, value, left] of [
      ['Phase', 'Terminate', 'Terminate'],
      ['Result', 'Failure', 'Prepare'],
      ['From', 'Pending', 'Schedule'],
      ['To', 'Error', 'Terminate'],
    ] as const) {
      await pick(page, filter, value)
      await shows(page, left)
      expect(page.url()).toContain(`h.${filter.toLowerCase()}=`)
      await pick(page, filter, value)
      await shows(page, ...all)
      expect(page.url()).not.toContain('h.')
    }
    const text = page.getByRole('textbox', { name: 'Id, code, message or step' })
    for (const [words, left] of [
      [`${session.id}-0002`, 'Prepare'],
      ['engine_pull_not-found', 'Prepare'],
      ['with priority', 'Schedule'],
      ['logs', 'Terminate'],
    ] as const) {
      await text.fill(words)
      await shows(page, left)
    }
    await text.fill('no such thing')
    await page.getByText('No phases match the filter.').waitFor()
    await eventually('it is in the address', async () => page.url().includes('no+such+thing'))
    await page.reload()
    await page.getByText('No phases match the filter.').waitFor()
    await page.getByRole('button', { name: 'Clear filter' }).click()
    await shows(page, ...all)
    await eventually('the field is empty', async () => (await text.inputValue()) === '')
  })

  it('stays current by itself, and is read again by a button', async () => {
    const session = await program.running({ name: 'ends-soon', image })
    const page = await browser.page(program, path(session))
    await shows(page, 'Schedule', 'Prepare', 'Start')
    const [answer] = await Promise.all([
      page.waitForResponse(`**/sessions/${session.id}/history`),
      page.getByRole('button', { name: 'Refresh' }).last().click(),
    ])
    expect(answer.status()).toBe(200)
    await program.call('POST', `/sessions/${session.id}/terminate`, { forced: true })
    await shows(page, 'Schedule', 'Prepare', 'Start', 'Terminate')
  })

  it('gives every result a word, a sign and the colour of its kind', async () => {
    const session = await failed('every-result')
    const [first] = await program.call<Phase[]>('GET', `/sessions/${session.id}/history`)
    const kinds = {
      SUCCESS: ['Success', 'success'],
      FAILURE: ['Failure', 'error'],
      EXPIRED: ['Expired', 'error'],
      GIVE_UP: ['Gave up', 'error'],
      NEED_RETRY: ['Will retry', 'warning'],
      STALE: ['Stale', 'text-tertiary'],
      SKIPPED: ['Skipped', 'text-tertiary'],
      RUNNING: ['In progress', 'primary'],
    }
    const page = await browser.page(program)
    // No machine brings all of them about in one session.
    await page.route('**/history', (route) =>
      route.fulfill({ json: Object.keys(kinds).map((result, i) => ({ ...first, id: `p${i}`, result, steps: [] })) }),
    )
    await page.goto(`${program.url}${path(session)}`)
    for (const [word, token] of Object.values(kinds)) {
      const badge = phases(page).getByText(word as string, { exact: true })
      const [drawn, wanted] = await colour(badge, token as string)
      expect([word, drawn]).toEqual([word, wanted])
      expect(await badge.locator('svg').count()).toBe(1)
    }
    await picture(page, 'history-results')
  })

  it('explains itself when there is nothing, and when it cannot be read', async () => {
    const session = await failed('nothing-there')
    const page = await browser.page(program)
    let broken = true
    await page.route('**/history', (route) =>
      broken
        ? route.fulfill({
            status: 500,
            json: { code: 'store_read_failed', message: 'The record cannot be read.', hint: 'Look at the log.' },
          })
        : route.fulfill({ json: [] }),
    )
    await page.goto(`${program.url}${path(session)}`)
    const alert = page.getByRole('alert').filter({ hasText: 'The record cannot be read.' })
    await alert.getByText('store_read_failed').waitFor()
    broken = false
    await alert.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No entries yet.').waitFor()
  })

  it('shows the steps of a phase that failed, of the others when they are asked for', async () => {
    const page = await browser.page(program, path(await failed('step-by-step')))
    await page.getByRole('button', { name: 'Hide the steps of Prepare' }).waitFor()
    const why = page.getByText('The simulated registry does not have the image nowhere/nothing:1.')
    expect(await why.count()).toBe(2) // of the phase, and of its step
    await page.getByRole('button', { name: 'Hide the steps of Prepare' }).click()
    await eventually('the step is hidden', async () => (await why.count()) === 1)
    await page.getByRole('button', { name: 'Show the steps of Schedule' }).press('Enter')
    for (const step of ['order', 'validate', 'choose', 'grant']) await page.getByText(step, { exact: true }).waitFor()
    await page.getByText('Number 1 of 1 in line, with priority 10.').waitFor()
    await picture(page, 'history-steps')
  })

  it('has one row for a phase however long it waits, with the reason as it is now', async () => {
    const running = await program.running({ name: 'holds-all', image, resources: { cpu: 16, memory: 1024 ** 3 } })
    const waiting = await program.launch({ name: 'tries-again', image })
    const page = await browser.page(program, path(waiting))
    await shows(page, 'Schedule')
    await phase(page, 'Schedule').getByText('In progress').waitFor()
    const why = /^Needs 1 of 16 CPUs on \S+, 0 are free\./
    await page.getByRole('dialog').getByText(why).first().waitFor()
    await program.call('POST', `/sessions/${running.id}/terminate`, { forced: true })
    await program.status(waiting.id, 'RUNNING')
    await shows(page, 'Schedule', 'Prepare', 'Start')
    await phase(page, 'Schedule').getByText('Success').waitFor()
  })

  it('is ordered by when a phase was begun or last changed, either way', async () => {
    const page = await browser.page(program, path(await failed('in-order')))
    const forth = ['Schedule', 'Prepare', 'Terminate']
    await shows(page, ...forth)
    for (const [order, wanted] of [
      ['Newest first', forth.toReversed()],
      ['Least recently updated', forth],
      ['Most recently updated', forth.toReversed()],
      ['Oldest first', forth],
    ] as const) {
      await choose(page, 'Order', order)
      await shows(page, ...wanted)
    }
  })
})
