import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { inSession } from './appsPage'
import { Browser, picture, shut } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// A simulated machine, on which another person has sessions, too.
const program = new DemoProgram('workstation')
const image = 'python:3.12'
const browser = new Browser()

stage(program, browser, { afresh: true })

const status = async (id: string) => (await program.session(id)).status
const terminate = async (page: Page, title: string) => {
  const dialog = page.getByRole('dialog', { name: title })
  await dialog.getByRole('button', { name: 'Terminate', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}

describe('ending sessions', () => {
  it('names what is lost, waits where it can be undone, and is sent although the page is closed', async () => {
    const session = await program.running({ name: 'has-files', image, type: 'batch', command: 'sleep 900' })
    await program.launch({ name: 'starts-after', image, type: 'batch', command: 'true', after: [session.id] })
    await inSession(program, session, 'echo 1 > notes.txt; touch .hidden')
    const page = await browser.page(program)
    await row(page, 'has-files').getByRole('button', { name: 'Terminate' }).click()
    const dialog = page.getByRole('dialog', { name: 'Terminate has-files?' })
    await dialog.getByText('Deletes 1 entry of its home: notes.txt').waitFor()
    await dialog.getByText('Cancels 1 session that starts after it: starts-after').waitFor()
    await dialog.getByText(`${session.owner} · ${session.agent}`).waitFor()
    await picture(page, 'terminate-names')
    await terminate(page, 'Terminate has-files?')

    // Undone in the row.
    await row(page, 'has-files')
      .getByText(/^Terminates in \d+ s$/)
      .waitFor()
    await page.getByRole('region', { name: 'About to be terminated' }).waitFor()
    await picture(page, 'terminate-undo')
    await row(page, 'has-files').getByRole('button', { name: 'Undo', exact: true }).click()
    await page.getByRole('region', { name: 'About to be terminated' }).waitFor({ state: 'detached' })
    await row(page, 'has-files').getByRole('button', { name: 'Terminate' }).click()
    await terminate(page, 'Terminate has-files?')

    // Another page shows it, too; then nobody looks.
    await shut(page)
    const other = await browser.page(program, '/usage')
    await other.getByText(/^has-files is terminated in \d+ s$/).waitFor()
    expect(await status(session.id)).toBe('RUNNING')
    await shut(other)
    await program.status(session.id, 'TERMINATED')
    expect((await program.session(session.id)).reason).toBe('user-requested')
    const after = (await program.sessions()).find((s) => s.name === 'starts-after')
    expect([after?.status, after?.reason]).toEqual(['CANCELLED', 'dependency-failed'])
  })

  it('is sent when Slipway stops before', async () => {
    const session = await program.running({ name: 'is-stopped', image })
    await program.call('POST', `/sessions/${session.id}/terminate`, { undo: true })
    expect((await program.session(session.id)).ending).toBeTruthy()
    await program.stop()
    await program.start()
    await program.status(session.id, 'TERMINATED')
    expect((await program.session(session.id)).reason).toBe('user-requested')
  })

  it('selects only one’s own at once, and never more than is seen', async () => {
    for (const name of ['mine-a', 'mine-b', 'other-c']) await program.running({ name, image })
    const [machine] = await program.agents()
    await program.call('PUT', `/agents/${machine?.name ?? ''}/limits/minji`, { sessions: 5 })
    await program.call('POST', '/sessions', {
      owner: 'minji',
      spec: { name: 'of-minji', image, resources: { cpu: 1, memory: 256 * 1024 ** 2 } },
    })
    const page = await browser.page(program)
    await row(page, 'of-minji').getByText('Running').waitFor()
    await page.getByRole('checkbox', { name: 'Select all' }).click()
    await page.getByText('3 sessions selected').waitFor()
    expect(await row(page, 'of-minji').getByRole('checkbox').isChecked()).toBe(false)
    await row(page, 'of-minji').getByRole('checkbox').check()
    await page.getByText('1 of another owner').waitFor()
    await page.getByRole('button', { name: 'Clear', exact: true }).click()

    // Escape takes the suggestions away first and then the filter: what is selected is what is seen then, by its names.
    const filter = page.getByRole('combobox', { name: 'Filter sessions' })
    await filter.fill('mine')
    await eventually('it is filtered', async () => (await page.locator('[data-row-key] a').count()) === 2)
    await page.getByRole('checkbox', { name: 'Select all' }).click()
    await page.getByText('2 sessions selected').waitFor()
    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await filter.focus()
    await eventually('the filter is gone', async () => {
      if ((await filter.inputValue()) !== '') await filter.press('Escape')
      return (await filter.inputValue()) === ''
    })
    await eventually('all are listed', async () => (await page.locator('[data-row-key] a').count()) === 4)
    await page.getByRole('checkbox', { name: 'Select all' }).click()
    const bar = page.getByText('3 sessions selected').locator('..')
    await bar.getByRole('button', { name: 'Terminate' }).click()
    const dialog = page.getByRole('dialog', { name: 'Terminate 3 sessions?' })
    for (const name of ['mine-a', 'mine-b', 'other-c']) await dialog.getByText(name, { exact: true }).waitFor()
    await picture(page, 'terminate-several')
    await terminate(page, 'Terminate 3 sessions?')
    const toast = page.getByRole('region', { name: 'About to be terminated' })
    await toast.getByText(/^3 sessions are terminated in \d+ s$/).waitFor()
    await toast.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('3 sessions keep running').waitFor()
    await toast.waitFor({ state: 'detached' })
    expect((await program.sessions()).filter((s) => s.status === 'RUNNING')).toHaveLength(4)
  })
})
