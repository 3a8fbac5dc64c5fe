import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { inSession } from './appsPage'
import { Browser, picture, shut } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram } from './program'

// A simulated machine; the queue, the hub and the page are the real ones.
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
    await row(page, 'has-files').getByRole('button', { name: 'Undo', exact: true }).click()
    await page.getByRole('region', { name: 'About to be terminated' }).waitFor({ state: 'detached' })
    // Another page shows it, too; then no page is open.
    const other = await browser.page(program, '/usage')
    await other.getByText('Connected').waitFor()
    await row(page, 'has-files').getByRole('button', { name: 'Terminate' }).click()
    await terminate(page, 'Terminate has-files?')
    await other.getByText(/^has-files is terminated in \d+ s$/).waitFor()
    expect(await status(session.id)).toBe('RUNNING')
    await picture(page, 'terminate-undo')
    await shut(page)
    await shut(other)
    await program.status(session.id, 'TERMINATED')
    expect((await program.session(session.id)).reason).toBe('user-requested')
    const after = (await program.sessions()).find((s) => s.name === 'starts-after')
    await program.status(after?.id ?? '', 'CANCELLED')
    expect((await program.session(after?.id ?? '')).reason).toBe('dependency-failed')
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
})
