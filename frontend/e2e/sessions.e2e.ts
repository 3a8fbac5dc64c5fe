import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import type { Folder, Phase, Usage } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { enter, launch, row } from './launcherPage'
import { eventually, minimalImage, Program } from './program'

const program = new Program('docker')
const browser = new Browser()

stage(program, browser, { afresh: true })

const idOf = async (name: string) => (await program.sessions()).find((s) => s.name === name)?.id ?? ''

/** Starts the program's list of finished sessions. */
async function finished(page: Page): Promise<void> {
  await page.getByText('Finished', { exact: true }).click()
}

// Section 12, "Session creation / list" where a container matters: 3 created and terminated · 4 a batch goes well · 5
// logs ·
// 6 use · 7 transitions · 10 mounts · 11 a part of a folder, made on the way. The others: list.e2e.ts.
describe('a session', () => {
  it('is launched by five steps, shown as it comes to life, and given exactly what was asked for', async () => {
    const page = await browser.page(program, '/launcher')
    const mount = { source: '/usr/share', target: 'shared', readOnly: true }
    await enter(page, {
      name: 'five-steps',
      image: minimalImage,
      cpu: 1,
      memory: 320,
      env: { EPOCHS: '3', API_TOKEN: 'geheim' },
      mount,
      ports: '8080, 9000:9001',
    })
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
    await enter(page, {
      name: 'batch-of-three',
      type: 'Batch',
      image: minimalImage,
      command: 'echo "counted $((20 + 22))"\nexit 3',
      memory: 128,
    })
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

  it('that is a batch and goes well ends by itself as a success', async () => {
    const page = await browser.page(program, '/launcher')
    await enter(page, { name: 'goes-well', type: 'Batch', image: minimalImage, command: 'echo done', memory: 128 })
    await launch(page)
    await finished(page)
    await row(page, 'goes-well').getByText('Terminated').waitFor()
    const id = await idOf('goes-well')
    expect(await program.session(id)).toMatchObject({
      status: 'TERMINATED',
      result: 'success',
      reason: 'task-finished',
      exitCode: 0,
    })
    await row(page, 'goes-well').getByRole('link').click()
    await page.getByRole('dialog').locator('dt:text-is("Result") + dd').getByText('Success').waitFor()
  })

  it('goes through its statuses in order, each recorded by the phase that led to it', async () => {
    const page = await browser.page(program)
    await page.getByText('No running sessions').waitFor()
    // What the list says of it, as it says it.
    await page.evaluate(() => {
      const seen: string[] = []
      Object.assign(window, { seen })
      new MutationObserver(() => {
        const status = document.querySelector('[data-row-key] [data-status]')?.getAttribute('data-status')
        if (status && seen.at(-1) !== status) seen.push(status)
      }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-status'] })
    })
    const session = await program.running({ name: 'in-order' })
    await row(page, 'in-order').getByText('Running').waitFor()
    await row(page, 'in-order').getByRole('button', { name: 'Terminate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click()
    await page.getByText('No running sessions').waitFor()
    const course = [
      'PENDING',
      'SCHEDULED',
      'PREPARING',
      'PULLING',
      'PREPARED',
      'CREATING',
      'RUNNING',
      'TERMINATING',
      'TERMINATED',
    ]
    const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen)
    expect(seen).toContain('RUNNING')
    expect(seen).toEqual(course.filter((status) => seen.includes(status)))
    const phases = await program.call<Phase[]>('GET', `/sessions/${session.id}/history`)
    expect(phases.map((p) => [p.from, p.to, p.result])).toEqual([
      ['PENDING', 'SCHEDULED', 'SUCCESS'],
      ['SCHEDULED', 'PREPARED', 'SUCCESS'],
      ['PREPARED', 'RUNNING', 'SUCCESS'],
      ['RUNNING', 'TERMINATED', 'SUCCESS'],
    ])
  })

  it('shows its log as it is written, finds in it and hands it out', async () => {
    const { id } = await program.running({
      name: 'talks-on',
      type: 'batch',
      command:
        'n=0; until [ -e stop ]; do n=$((n+1)); echo "line $n"; sleep 0.2; done; echo "the last line"; sleep 900',
    })
    const page = await browser.page(program)
    await row(page, 'talks-on').getByRole('link').click()
    await page.getByRole('tab', { name: 'Logs' }).click()
    const log = page.getByRole('log', { name: 'Log of talks-on' })
    const newest = async () => Math.max(0, ...((await log.innerText()).match(/\d+/g)?.map(Number) ?? []))
    const before = await eventually('lines are shown', async () => (await newest()) || undefined)
    await eventually('it goes on by itself', async () => (await newest()) > before + 3)
    await program.cli('exec', id, '--', 'touch', 'stop')
    await log.getByText('the last line').waitFor()
    const times = page.getByRole('button', { name: 'Timestamps' })
    await times.click()
    await log
      .getByText(/^\d\d:\d\d:\d\d$/)
      .first()
      .waitFor()
    await times.click()
    await log
      .getByText(/^\d\d:\d\d:\d\d$/)
      .first()
      .waitFor({ state: 'detached' })
    await log.getByText('the last line').waitFor()
    await page.getByRole('textbox', { name: 'Search the log' }).fill('LAST LINE')
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByText('1 of 1').waitFor()
    await page.getByRole('textbox', { name: 'Search the log' }).fill('never written')
    await page.getByRole('status').getByText('No match').waitFor()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    expect(file.suggestedFilename()).toMatch(/^talks-on-main1-.*\.log$/)
    const lines = readFileSync(await file.path(), 'utf8')
      .trim()
      .split('\n')
    expect([lines[0], lines.at(-1)]).toEqual(['line 1', 'the last line'])
    await picture(page, 'logs-live')
  })

  it('shows what it uses, in its row and as charts', async () => {
    const mib = 96
    const { id } = await program.running({
      name: 'works-hard',
      type: 'batch',
      command: `python3 -c "held = b'x' * (${mib} << 20)\nwhile True: pass"`,
    })
    const page = await browser.page(program)
    const cell = row(page, 'works-hard')
    await cell.getByText(/^(0\.[1-9]|1\.\d) \/ 1$/).waitFor()
    await cell.getByText(/MiB \/ 256 MiB/).waitFor()
    await cell.getByRole('link').click()
    const value = async (chart: string) =>
      (
        await page
          .locator('figure')
          .filter({ has: page.getByRole('img', { name: chart, exact: true }) })
          .locator('figcaption')
          .innerText()
      )
        .replace(chart, '')
        .trim()
    await eventually('the chart of the CPU is at work', async () => parseFloat(await value('CPU')) >= 0.1)
    await eventually('the chart of the memory holds what is held', async () => parseFloat(await value('Memory')) >= mib)
    await eventually('the line is drawn', () =>
      page
        .locator('figure canvas')
        .first()
        .evaluate(
          (canvas: HTMLCanvasElement) =>
            canvas.width > 0 &&
            canvas
              .getContext('2d')
              ?.getImageData(0, 0, canvas.width, canvas.height)
              .data.some((part) => part > 0),
        ),
    )
    await picture(page, 'detail-usage')
    expect((await program.call<Usage[]>('GET', `/sessions/${id}/usage`)).at(-1)?.memory).toBeGreaterThanOrEqual(
      mib * 1024 ** 2,
    )
  })

  it('has its folder in its details, and in the folder what it wrote', async () => {
    const folder = await program.call<Folder>('POST', '/folders', { name: 'results' })
    const page = await browser.page(program, '/launcher?step=storage')
    await page.getByRole('checkbox', { name: 'Mount results', exact: true }).check()
    await page.getByRole('button', { name: 'Choose a directory in the folder of row 1' }).click()
    const picker = page.getByRole('dialog', { name: 'Part of results to mount' })
    await picker.getByRole('button', { name: 'New directory here' }).click()
    await picker.getByRole('textbox', { name: 'Name of the new directory' }).fill('run-1')
    await page.keyboard.press('Enter')
    await picker.getByRole('button', { name: 'run-1' }).click()
    await picker.getByRole('button', { name: 'Use this directory' }).click()
    await page.locator('button[data-step="type"]').click()
    await enter(page, { name: 'writes-there', image: minimalImage, memory: 128 })
    await launch(page, true)
    await row(page, 'writes-there').getByText('Running').waitFor()
    const id = await idOf('writes-there')
    await row(page, 'writes-there').getByRole('link', { name: 'writes-there' }).click()
    const mounts = page.getByRole('dialog').locator('dt:text-is("Mounts") + dd')
    await mounts.getByText('results/run-1', { exact: true }).waitFor()
    await mounts.getByText('/home/work/results', { exact: true }).waitFor()
    await program.cli('exec', id, '--', 'sh', '-c', 'echo 42 > /home/work/results/answer')
    await page.goto(`${program.url}/folders/${folder.id}?path=run-1`)
    await page.getByRole('dialog', { name: 'results' }).getByRole('button', { name: 'answer', exact: true }).waitFor()
    await program.endAll()
    await program.call('POST', `/folders/${folder.id}/trash`)
    await program.call('DELETE', `/folders/${folder.id}`)
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
    await row(page, 'has-to-wait')
      .getByText(/needs /i)
      .waitFor()
    await picture(page, 'sessions-waiting')
    await program.call('POST', `/sessions/${first.id}/terminate`, { forced: true })
    await row(page, 'has-to-wait').getByText('Running').waitFor()
  })
})
