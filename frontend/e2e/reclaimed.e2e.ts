import type { Page } from 'playwright-core'
import { describe, it } from 'vitest'
import { Browser, picture, shut } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram } from './program'

// What is told of a session after its end by idle checks. A minute of its life is six seconds here.
const program = new DemoProgram('workstation', 10)
const browser = new Browser()

stage(program, browser, { afresh: true })

const GIB = 1024 ** 3

/** Launches a session that begins its minute of life when it is let. */
async function launched(name: string): Promise<{ id: string; begin: () => Promise<unknown> }> {
  const image = 'python:3.12'
  const first = await program.running({ name: 'has-all-cpus', image, resources: { cpu: 16, memory: GIB } })
  const idle = { lifetime: '1m' }
  const { id } = await program.launch({ name, image, resources: { cpu: 1, memory: GIB }, idle })
  return { id, begin: () => program.call('POST', `/sessions/${first.id}/terminate`, { forced: true }) }
}

const bell = (page: Page) => page.getByRole('button', { name: /^Notifications, \d+ unread$/ })

describe('an end by idle checks', () => {
  it('is in the bell afterwards, with its reason and the way to the history, also if no page was open', async () => {
    const seen = await launched('lost-in-sight')
    const page = await browser.page(program, '/gpus')
    await page.getByText('Connected').waitFor()
    await seen.begin()
    await program.status(seen.id, 'TERMINATED')
    await bell(page).click()
    const drawer = page.getByRole('dialog', { name: 'Notifications' })
    const entry = (name: string) => drawer.getByRole('listitem').filter({ hasText: name })
    await entry('lost-in-sight')
      .getByText(/^The session was reclaimed\. It has run for .* of its maximum lifetime of 1m\.$/)
      .waitFor()
    await picture(page, 'reclaim-bell')
    await entry('lost-in-sight').getByRole('link', { name: 'History' }).click()
    await page.waitForURL(`**/sessions/${seen.id}?view=history`)
    const unseen = await launched('lost-unseen')
    await row(page, 'lost-unseen').waitFor()
    await shut(page)
    await unseen.begin()
    await program.status(unseen.id, 'TERMINATED')
    const later = await browser.page(program, '/usage')
    await bell(later).click()
    await later
      .getByRole('listitem')
      .filter({ hasText: 'lost-unseen' })
      .getByText(/^The session was reclaimed\./)
      .waitFor()
  })
})
