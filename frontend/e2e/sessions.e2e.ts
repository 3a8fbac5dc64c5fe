import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { Browser, picture } from './browser'
import { watchOver } from './hooks'
import { enter, launch, row } from './launcherPage'
import { eventually, minimalImage, Program } from './program'

const program = new Program('docker')
let browser: Browser

beforeAll(async () => {
  await program.start()
  browser = await Browser.open()
})
afterAll(async () => {
  await browser?.close()
  await program.close()
})
// Hooks run from the last to the first: pictures of what failed come before the end of its sessions.
afterEach(() => program.endAll())
watchOver(() => browser)

const idOf = async (name: string) => (await program.sessions()).find((s) => s.name === name)?.id ?? ''

/** Starts the program's list of finished sessions. */
async function finished(page: Page): Promise<void> {
  await page.getByText('Finished', { exact: true }).click()
}

describe('a session', () => {
  it('is launched by five steps, shown as it comes to life, and given exactly what was asked for', async () => {
    const page = await browser.page(program, '/launcher')
    const mount = { source: program.home + '/logs', target: 'shared', readOnly: true }
    await enter(page, { name: 'five-steps', image: minimalImage, cpu: 1, memory: 320, env: { EPOCHS: '3', API_TOKEN: 'geheim' }, mount, ports: '8080, 9000:9001' })
    await picture(page, 'launcher-confirm')
    const command = await page.locator('pre', { hasText: 'slipway run' }).innerText()
    expect(command).toContain('--name five-steps')
    expect(command).not.toContain('geheim')
    expect(page.url()).not.toContain('geheim')
    await launch(page, true)
    await row(page, 'five-steps').getByText('Running').waitFor()
    await picture(page, 'sessions-running')
    const session = await program.session(await idOf('five-steps'))
    expect(session.spec.resources).toMatchObject({ cpu: 1, memory: 320 * 1024 ** 2, shm: 64 * 1024 ** 2 })
    expect(session.spec.ports).toEqual([8080, 9000, 9001])
    expect(session.spec.mounts).toEqual([{ source: mount.source, target: '/home/work/shared', readOnly: true }])
    expect(session.spec.env?.find((v) => v.name === 'API_TOKEN')?.value).not.toBe('geheim')
  })

  it('that is a batch ends by itself with its exit code, and its log stays', async () => {
    const page = await browser.page(program, '/launcher')
    await enter(page, { name: 'batch-of-three', type: 'Batch', image: minimalImage, command: 'echo "counted $((20 + 22))"\nexit 3', memory: 128 })
    await launch(page)
    const id = await idOf('batch-of-three')
    await eventually('the batch has ended', async () => (await program.session(id)).status === 'TERMINATED')
    expect(await program.session(id)).toMatchObject({ result: 'failure', reason: 'task-failed', exitCode: 3 })
    await finished(page)
    await row(page, 'batch-of-three').waitFor()
    await page.goto(`${program.url}/sessions/${id}?view=logs`)
    await page.getByRole('log').getByText('counted 42').waitFor()
    await picture(page, 'logs-after-end')
  })

  it('is renamed in its drawer and refuses a bad name', async () => {
    const session = await program.running({ name: 'old-name' })
    const page = await browser.page(program, `/sessions/${session.id}`)
    await page.getByRole('button', { name: 'Rename' }).click()
    const field = page.getByRole('textbox', { name: 'New name' })
    await field.fill('no')
    await page.getByText('At least 4 characters.').waitFor()
    await field.fill('new-name')
    await field.press('Enter')
    await eventually('it is renamed', async () => (await program.session(session.id)).name === 'new-name')
    await page.getByRole('heading', { name: 'new-name' }).or(page.getByText('new-name')).first().waitFor()
    await picture(page, 'detail')
  })

  it('is terminated after a question', async () => {
    const session = await program.running({ name: 'to-be-ended' })
    const page = await browser.page(program)
    await row(page, 'to-be-ended').getByRole('button', { name: 'Terminate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click()
    await eventually('it has ended', async () => (await program.session(session.id)).status === 'TERMINATED')
    expect((await program.session(session.id)).reason).toBe('user-requested')
    await eventually('it left the list', async () => (await row(page, 'to-be-ended').count()) === 0)
  })

  it('is ended by force', async () => {
    const session = await program.running({ name: 'forced-out' })
    const page = await browser.page(program)
    await row(page, 'forced-out').getByRole('button', { name: 'Terminate' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Force', { exact: true }).click()
    await dialog.getByRole('button', { name: 'Force-terminate' }).click()
    await eventually('it has ended', async () => (await program.session(session.id)).status === 'TERMINATED')
    expect((await program.session(session.id)).reason).toBe('force-terminated')
  })

  it('that asks for more memory than is free waits and says why', async () => {
    const machine = (await program.machines())[0]
    if (!machine) throw new Error('no machine')
    const most = Math.floor((machine.memory * 0.7) / 1024 ** 2)
    const first = await program.running({ name: 'holds-most', resources: { cpu: 1, memory: most * 1024 ** 2 } })
    const page = await browser.page(program, '/launcher')
    await enter(page, { name: 'has-to-wait', image: minimalImage, cpu: 1, memory: most })
    await page.getByText('Will wait', { exact: true }).waitFor()
    await picture(page, 'launcher-will-wait')
    await launch(page)
    await row(page, 'has-to-wait').getByText('Pending').waitFor()
    await row(page, 'has-to-wait').getByText(/needs /i).waitFor()
    await picture(page, 'sessions-waiting')
    await program.call('POST', `/sessions/${first.id}/terminate`, { forced: true })
    await row(page, 'has-to-wait').getByText('Running').waitFor()
  })
})

