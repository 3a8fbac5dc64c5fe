import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { Far } from './far'
import { watchOver } from './hooks'
import { row } from './launcherPage'
import { eventually, Program } from './program'
import { ShellPage, Wire } from './shellPage'

// A second agent, a process of its own with files of its own, is paired, used, lost, found again and forgotten.
const program = new Program('sim')
const far = new Far()
let browser: Browser

beforeAll(async () => {
  await Promise.all([program.start(), far.start()])
  browser = await Browser.open()
})
afterAll(async () => {
  await browser?.close()
  await program.close()
  await far.close()
})
watchOver(() => browser)

const agentState = async (name: string) => (await program.agents()).find((a) => a.name === name)?.connection.state

describe('another agent', () => {
  it('is paired by a code, runs a session, is greyed while it is gone, comes back by itself and is forgotten', async () => {
    const page = await browser.page(program, '/agents')
    await page.getByText('Only this computer so far').waitFor()
    await page.getByRole('button', { name: 'Add an agent' }).first().click()
    await page.getByRole('textbox', { name: 'Address' }).fill('ftp://lab')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('It begins with ssh://').waitFor()
    await page.getByRole('textbox', { name: 'Address' }).fill(far.address)
    await page.getByRole('textbox', { name: 'Name' }).fill('lab')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const code = page.getByRole('textbox', { name: 'Pairing code' })
    await code.waitFor()
    await picture(page, 'agent-pairing')
    await code.fill(far.code())
    await code.press('Enter')
    await page.getByRole('button', { name: 'Show lab' }).click()
    await page.waitForURL('**/agents/lab')
    const card = page.getByRole('article', { name: 'lab' })
    await card.getByText('Connected').waitFor()
    await card.getByText(/\d m?s away/).waitFor()
    await page.getByRole('button', { name: 'Run the checks' }).click()
    await page.getByText('Container engine').waitFor()
    await picture(page, 'agent-detail')

    await page.goto(`${program.url}/launcher?step=environment`)
    await page.getByRole('combobox', { name: 'Machine' }).click()
    await page.locator('.ant-select-dropdown:visible').getByText('lab', { exact: true }).click()
    await picture(page, 'launcher-agent')
    const session = await program.running({ name: 'far-away', agent: 'lab', image: 'python:3.12' })
    expect(session.agent).toBe('lab')
    await page.goto(`${program.url}/sessions`)
    await row(page, 'far-away').getByTitle('On lab').waitFor()
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('echo "sum $((40 + 2))"')
    expect(await shell.rows()).toMatch(/^sum 42$/m)

    await far.stop()
    await page.goto(`${program.url}/sessions`)
    await row(page, 'far-away').getByText(/Last heard/).waitFor()
    await eventually('no terminal is offered', () => row(page, 'far-away').getByRole('button', { name: 'Terminal' }).isDisabled())
    await page.getByRole('button', { name: '1 agent not reached' }).click()
    await page.getByRole('button', { name: 'Retry lab now' }).waitFor()
    await picture(page, 'agent-gone')
    await page.keyboard.press('Escape')

    await far.start()
    await row(page, 'far-away').getByText('Running').waitFor()
    await eventually('the row is live again', async () => (await row(page, 'far-away').getByText(/Last heard/).count()) === 0)
    await page.getByRole('button', { name: 'Connected' }).waitFor()
    await eventually('it is connected', async () => (await agentState('lab')) === 'connected')
    await program.endAll()

    await page.goto(`${program.url}/agents/lab`)
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    const question = page.getByRole('dialog', { name: 'Remove lab?' })
    await picture(page, 'agent-remove')
    await question.getByRole('button', { name: 'Remove', exact: true }).click()
    await eventually('it is forgotten', async () => (await program.agents()).length === 1)
    await page.getByText('There is no agent lab').waitFor()
  })
})
