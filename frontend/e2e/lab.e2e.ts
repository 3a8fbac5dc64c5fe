import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { Lab, passphrase } from './lab'
import { row } from './launcherPage'
import { execute, newNotebook, openNotebooks, printed } from './notebookPage'
import { binary, eventually, notebookImage, Program } from './program'
import { ShellPage, Wire } from './shellPage'

// A machine that a person has only a login to, over a cable that is taken out: each test goes on where the one before
// left it.
const lab = new Lab()
const program = new Program('sim', lab.env)
const earlier = mkdtempSync(join(tmpdir(), 'slipway-earlier-'))
const browser = new Browser()
let session: Session

beforeAll(async () => {
  program.path = join(earlier, 'slipway')
  const flags = '-s -w -X slipway/backend/place.Version=0.0.9'
  execFileSync('go', ['build', '-trimpath', '-ldflags', flags, '-o', program.path, '.'], {
    cwd: resolve('..'),
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  })
  await lab.open()
})
afterAll(async () => {
  await lab.close()
  rmSync(earlier, { recursive: true, force: true })
})
stage(program, browser)

const state = async () => (await program.agents()).find((a) => a.name === 'lab')?.connection.state
const reached = () => eventually('the lab is reached', async () => (await state()) === 'connected')
const prompt = (page: Page, kind: string) => page.locator(`[data-prompt="${kind}"]`)
const stepOf = (page: Page, name: string) => page.locator(`[data-operation] [data-step="${name}"]`)

/** Works until it is let go on, and ends while nobody can see it. */
const cell = (name: string) => `
import os, time
print('begun', flush=True)
while not os.path.exists('/tmp/go-on-${name}'):
    time.sleep(0.1)
print('arrived', flush=True)
open('/tmp/ended-${name}', 'w').close()
`

/** Runs a command in the session's container, past everything that could be cut. */
const inSession = (...command: string[]) => {
  const container = session.kernels[0]?.container ?? ''
  return promisify(execFile)('docker', ['-H', process.env.SLIPWAY_TEST_DOCKER ?? '', 'exec', container, ...command])
}

/** Lets a cell go on, and waits until it has ended. */
async function letGo(name: string): Promise<void> {
  await inSession('touch', `/tmp/go-on-${name}`)
  await eventually('the cell has ended meanwhile', () =>
    inSession('test', '-e', `/tmp/ended-${name}`).then(
      () => true,
      () => false,
    ),
  )
}

describe('a machine with nothing but a login', () => {
  it('is looked at, says what is missing and how to mend it, and is added after that', async () => {
    const page = await browser.page(program, '/agents?add=1')
    await picture(page, 'lab-add')
    await page.getByRole('textbox', { name: 'Address' }).fill('ssh://lab')
    await page.getByRole('button', { name: 'Check only' }).click()
    await prompt(page, 'host-key').getByText(lab.fingerprint).waitFor()
    await picture(page, 'lab-host-key')
    await prompt(page, 'host-key').getByRole('button', { name: 'Trust' }).click()
    const secret = prompt(page, 'passphrase').getByRole('textbox', { name: 'Passphrase' })
    await secret.fill('wrong')
    await secret.press('Enter')
    await prompt(page, 'passphrase').getByText('Not accepted').waitFor()
    await picture(page, 'lab-passphrase')
    await secret.fill(passphrase)
    await secret.press('Enter')
    await stepOf(page, 'docker').and(page.locator('[data-state="failed"]')).waitFor()
    await stepOf(page, 'docker').getByRole('button', { name: 'Copy the fix' }).waitFor()
    await picture(page, 'lab-no-docker')
    expect(lab.processes()).toEqual([])

    lab.docker(process.env.SLIPWAY_TEST_DOCKER ?? '')
    lab.cable.stallAfter(8 * 1024 ** 2) // in the middle of the program
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await stepOf(page, 'upload').and(page.locator('[data-state="running"]')).waitFor()
    await eventually('the step that runs is in view', () =>
      stepOf(page, 'upload').evaluate((step) => {
        const { top, bottom } = step.getBoundingClientRect()
        return top >= 0 && bottom <= window.innerHeight
      }),
    )
    await picture(page, 'lab-upload')
    lab.cable.letGo()
    await page.getByRole('button', { name: 'Show lab' }).waitFor()
    await picture(page, 'lab-added')
    await page.getByRole('button', { name: 'Show lab' }).click()
    await page.waitForURL('**/agents/lab')
    const card = page.getByRole('article', { name: 'lab' })
    await card.getByText('Connected').waitFor()
    await card.getByText('0.0.9').waitFor()
    await picture(page, 'lab-detail')
  })

  it('runs a session, is lost, and comes back by itself with the shell and the notebook as they were', async () => {
    session = await program.running({
      name: 'far-away',
      agent: 'lab',
      image: notebookImage,
      resources: { cpu: 1, memory: 700 * 1024 ** 2 },
    })
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tree = await openNotebooks(browser.context, page)
    const sheet = await newNotebook(browser.context, tree)
    await execute(sheet, cell('cut'))
    await eventually('the cell is at work', async () => (await printed(sheet)) === 'begun')
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    // In a shell of its own: bash goes on with a loop when Ctrl+C comes just as the loop's command ends.
    await shell.type(`sh -c 'for i in $(seq 1 100000); do echo line-$i; sleep 0.1; done'`)
    await shell.saw('line-5')

    lab.cable.cut()
    await letGo('cut')
    await page.getByRole('status').getByText('lab is not connected,').waitFor()
    await page.getByRole('button', { name: '1 machine not connected' }).click()
    await page.getByRole('button', { name: 'Retry lab now' }).waitFor()
    await picture(page, 'lab-lost-terminal')
    const [list] = await Promise.all([browser.page(program, '/sessions'), tree.reload({ waitUntil: 'commit' })])
    await row(list, 'far-away')
      .getByText(/Last heard/)
      .waitFor()
    await picture(list, 'lab-lost-sessions')
    await tree.getByRole('heading', { name: 'lab is not reached' }).waitFor()
    await picture(tree, 'lab-lost-app')
    await list.goto(`${program.url}/agents/lab`)
    await list.getByRole('article', { name: 'lab' }).getByText('Not connected').waitFor()
    await picture(list, 'lab-lost-agent')

    expect(await printed(sheet)).toBe('begun')

    lab.cable.mend()
    await reached()
    await page.getByText('lab is not connected,').waitFor({ state: 'detached' })
    await eventually('what the cell printed arrives', async () => (await printed(sheet)) === 'begun\narrived')
    await tree.locator('#notebook_list').waitFor()
    await page.keyboard.press('Escape')
    const line = async () =>
      Number(/line-(\d+)\n*$/.exec((await shell.output()).toString().replaceAll('\r', ''))?.[1] ?? 0)
    const before = await line()
    await eventually('the shell goes on', async () => (await line()) > before + 5)
    const lines = [...(await shell.output()).toString().matchAll(/^line-(\d+)\r$/gm)].map((m) => Number(m[1]))
    expect(lines).toEqual(Array.from({ length: lines.length }, (_, i) => i + 1))
  })

  it('shows what a cell printed while the computer slept for eight hours, and the agent was killed', async () => {
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tree = await openNotebooks(browser.context, page)
    const fresh = await newNotebook(browser.context, tree)
    await fresh.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
    const address = fresh.url()
    await fresh.close()
    const sheet = await browser.context.newPage()
    await sheet.clock.install()
    await sheet.goto(address)
    await execute(sheet, cell('sleep'))
    await eventually('the cell is at work', async () => (await printed(sheet)) === 'begun')
    await Promise.all([
      sheet.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.ok()),
      sheet.keyboard.press('Control+s'),
    ])

    process.kill(program.pid, 'SIGSTOP')
    lab.cable.cut()
    lab.kill()
    await letGo('sleep')
    await sheet.clock.fastForward('08:00:00')
    process.kill(program.pid, 'SIGCONT')
    lab.cable.mend()
    await eventually('the page shows everything', async () => {
      const answer = await sheet.goto(address).catch(() => null)
      return answer?.ok() && (await printed(sheet)) === 'begun\narrived'
    })
    await reached()
  })

  it('is upgraded in place, and the session stays', async () => {
    await program.stop()
    program.path = binary
    await program.start()
    await reached()
    const page = await browser.page(program, '/agents/lab')
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Upgrade to / })
      .click()
    await stepOf(page, 'start').and(page.locator('[data-state="running"], [data-state="ok"]')).waitFor()
    await picture(page, 'lab-upgrade')
    await eventually('it runs the new version', async () => {
      const agent = (await program.agents()).find((a) => a.name === 'lab')
      return agent?.connection.state === 'connected' && agent.version !== '0.0.9' && !agent.upgrade
    })
    expect((await program.session(session.id)).status).toBe('RUNNING')
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.live()
    await shell.page.keyboard.press('Control+C')
    await shell.run('echo "still $((40 + 2))"')
    await shell.saw('still 42')
  })

  it('with another ssh key is a question, and nothing goes there before the answer', async () => {
    lab.cable.cut()
    await eventually('it is lost', async () => (await state()) !== 'connected')
    await lab.rekey()
    lab.cable.mend()
    const page = await browser.page(program, '/agents/lab')
    const question = page.getByRole('alertdialog', { name: 'The SSH host key of this machine has changed' })
    await question.getByText(lab.fingerprint).waitFor()
    await picture(page, 'lab-other-key')
    await question.getByRole('button', { name: 'Accept the new key' }).click()
    await prompt(page, 'host-key').getByText(lab.fingerprint).first().waitFor()
    await prompt(page, 'host-key').getByRole('button', { name: 'Trust' }).click()
    await reached()
  })

  it('is left as it was found when it is removed', async () => {
    const page = await browser.page(program, '/agents/lab')
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    const question = page.getByRole('dialog', { name: 'Remove lab?' })
    await question.getByText('Also uninstall Slipway there').click()
    await question.getByText('1 live session will be terminated.').waitFor()
    await picture(page, 'lab-remove')
    await question.getByRole('button', { name: 'Uninstall and remove' }).click()
    await eventually('it is forgotten', async () => (await program.agents()).length === 1)
    await page.getByText('Machine lab not found').waitFor()
    expect(lab.processes()).toEqual([])
    const left = execFileSync('docker', ['ps', '-aq', '--filter', `label=slipway.session=${session.id}`], {
      encoding: 'utf8',
      env: { ...process.env, DOCKER_HOST: process.env.SLIPWAY_TEST_DOCKER },
    })
    expect(left).toBe('')
  })
})
