import { describe, expect, it } from 'vitest'
import type { Folder, ResourceSummary, Session } from '@/api/types.gen'
import { appsOf, inSession, openedBy, tile } from './appsPage'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// No Docker, no GPU, no other computer: the whole launcher over two simulated machines.
const program = new DemoProgram('lab', 1, { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
const browser = new Browser()

stage(program, browser)

const lab = async () => (await program.agents()).find((a) => a.name === 'lab')

describe('the demo', () => {
  it('is marked wherever one looks', async () => {
    const page = await browser.page(program)
    for (const section of ['sessions', 'launcher', 'folders', 'gpus', 'usage', 'agents', 'images', 'settings']) {
      await page.goto(`${program.url}/${section}`)
      await page.getByRole('button', { name: 'Demo', exact: true }).waitFor()
      await eventually('the title says so', async () => (await page.title()).includes('Demo'))
    }
    await page.getByRole('button', { name: 'Demo', exact: true }).click()
    await page.getByText('Nothing here is real').waitFor()
    await page.getByText('Everyday work on both machines').waitFor()
    expect(await program.cli('ps')).toContain('llm-pretrain')
  })

  it('marks a terminal in a window of its own', async () => {
    const notebook = (await program.sessions()).find((s) => s.name === 'notebook')
    await program.status(notebook?.id ?? '', 'RUNNING')
    const page = await browser.page(program, `/sessions/${notebook?.id ?? ''}/terminal?window=1`)
    await page.getByText('Demo', { exact: true }).waitFor()
  })

  it('runs a notebook in the browser, over the files of the session', async () => {
    const session = (await program.sessions()).find((s) => s.name === 'notebook')
    if (!session) throw new Error('the story has no notebook')
    await program.status(session.id, 'RUNNING')
    const apps = await appsOf(browser, program, session)
    const page = await openedBy(browser, () => tile(apps, 'jupyterlab').getByRole('button').first().click())
    await page.getByRole('button', { name: 'churn/explore.ipynb' }).click()
    await page.getByRole('status').getByText('Ready').waitFor()
    await page.getByRole('button', { name: 'Run all' }).click()
    await page.getByText('20 customers written').waitFor()
    await page.getByRole('img', { name: '<SVG object>' }).waitFor()
    await eventually(
      'the table has its rows',
      async () => (await page.frameLocator('iframe').getByRole('row').count()) === 4,
    )
    expect(await page.getByRole('alert').count()).toBe(0)
    await picture(page, 'demo-notebook')

    // What a cell has written is there for terminal and explorer, and the other way round.
    expect(await inSession(program, session, 'wc -l < churn/at-risk.csv')).toContain('21')
    await inSession(program, session, 'echo from the terminal > churn/note.txt')
    const folder = (await program.call<Folder[]>('GET', '/folders')).find((one) => one.name === 'churn')
    const explorer = await browser.page(program, `/folders/${folder?.id ?? ''}`)
    await explorer.getByText('at-risk.csv').waitFor()
    await page.bringToFront()
    await page.getByRole('button', { name: 'Code', exact: true }).click()
    await page.keyboard.insertText('print(open("note.txt").read())\nimport time\nwhile True: time.sleep(1)')
    await page.keyboard.press('Shift+Enter')
    await page.getByText('from the terminal').waitFor()
    await page.getByRole('button', { name: 'Interrupt' }).click()
    await page.getByRole('alert').getByText('KeyboardInterrupt').first().waitFor()
    await page.getByText('Saved', { exact: true }).waitFor()
    expect(await inSession(program, session, 'cat churn/explore.ipynb')).toContain('from the terminal')

    // Nobody's work is written over.
    await inSession(program, session, 'cp churn/explore.ipynb churn/other.ipynb; echo >> churn/explore.ipynb')
    await page.keyboard.insertText('1 + 1')
    await page.getByText('Somebody else has changed this notebook').waitFor()
    await page.getByRole('button', { name: 'Put this page in its place' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    const written = await inSession(program, session, 'cat churn/explore.ipynb')
    expect([written.includes('1 + 1'), written.endsWith('}\n')]).toEqual([true, true])
  })

  it('cuts the tunnel when the lid is closed, and everything resumes', async () => {
    // Only rows in sight are drawn, and the banner takes one: without a filter the order of the launches decides.
    const page = await browser.page(program, '/sessions?q=agent%3Alab+pretrain')
    await row(page, 'llm-pretrain').getByText('Running').waitFor()
    await page.getByRole('button', { name: 'Close the lid' }).click()
    await page.getByText('The lid is closed.').waitFor()
    await eventually('the lab is not reached', async () => (await lab())?.connection.state !== 'connected')
    await row(page, 'llm-pretrain').waitFor() // what was known of it stays
    await picture(page, 'demo-lid-closed')
    await page.getByRole('status').getByRole('button', { name: 'Open the lid' }).click()
    await page.getByText('The lid is closed.').waitFor({ state: 'hidden' })
    await eventually('the lab is reached again', async () => (await lab())?.connection.state === 'connected')
    await row(page, 'llm-pretrain').getByText('Running').waitFor()
  })

  it('moves a waiting session to the machine that has room, by itself or by a button', async () => {
    const GIB = 1024 ** 3
    const fill = async (agent: string) => {
      const machine = (await program.call<ResourceSummary[]>('GET', '/resources')).find((one) => one.agent === agent)
      return program.running({
        name: `all-of-${agent}`,
        image: 'python:3.12',
        agent,
        resources: { cpu: machine?.free.cpu ?? 0, memory: GIB },
      })
    }
    const waiter = { image: 'python:3.12', resources: { cpu: 2, memory: GIB } }
    // The only session of the story that would end by itself and make room.
    const forgotten = (await program.sessions()).find(({ name }) => name === 'forgotten')
    if (!forgotten) throw new Error('the story has no forgotten session')
    await program.call('POST', `/sessions/${forgotten.id}/terminate`, { forced: true })
    await program.status(forgotten.id, 'TERMINATED')
    const machines = (await program.agents()).map(({ name }) => name)
    const full = new Map<string, Session>()
    for (const machine of machines) full.set(machine, await fill(machine))

    const floats = await program.launch({ ...waiter, name: 'anywhere' })
    const elsewhere = machines.find((name) => name !== floats.agent) ?? ''
    const page = await browser.page(program, `/sessions/${floats.id}`)
    const drawer = page.getByRole('dialog', { name: 'anywhere' })
    await drawer.getByText('moves to any machine that has room while it waits').waitFor()
    await picture(page, 'session-floats')
    const fixed = await program.launch({ ...waiter, name: 'here', agent: floats.agent })
    await program.call('POST', `/sessions/${full.get(elsewhere)?.id ?? ''}/terminate`, { forced: true })
    const moved = await program.status(floats.id, 'RUNNING') // the old id leads to it
    expect([moved.agent, moved.from, moved.id === floats.id]).toEqual([elsewhere, floats.id, false])
    await page.waitForURL(`**/sessions/${moved.id}*`)
    await drawer.getByText('Running', { exact: true }).first().waitFor()

    await page.goto(`${program.url}/sessions/${fixed.id}`)
    const button = page.getByRole('button', { name: `Move to ${elsewhere}: starts now` })
    await button.waitFor()
    await picture(page, 'session-move')
    await button.click()
    await eventually('it runs there', async () => {
      const here = (await program.sessions()).find(({ name, status }) => name === 'here' && status === 'RUNNING')
      return here?.agent === elsewhere
    })
    await page.getByRole('dialog', { name: 'here' }).getByText('Running', { exact: true }).first().waitFor()
  })

  it('is shown around, each word beside its control', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByRole('button', { name: 'Take the tour' }).click()
    const steps = 11
    for (let at = 1; at <= steps; at++) {
      const place = page.getByText(`${at} of ${steps}`, { exact: true })
      await place.waitFor()
      // The light lies on a control that is there, and the words are in sight.
      await eventually(`step ${at} shows something`, async () => {
        const light = await page
          .locator('.slipway-tour mask rect')
          .evaluateAll((rects) => rects.slice(1).map((rect) => Number(rect.getAttribute('width'))))
        const words = await place.boundingBox()
        return Number(light[0]) > 20 && words !== null && words.x > 0 && words.y > 0
      })
      await page
        .locator('.slipway-tour')
        .getByRole('button', { name: at < steps ? 'Next' : 'Finish', exact: true })
        .click()
    }
    await page.locator('.slipway-tour').first().waitFor({ state: 'detached' })
  })
})
