import { afterAll, describe, expect, it } from 'vitest'
import type { Operation } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { Far } from './far'
import { stage } from './hooks'
import { choose, enterMemory, row, step } from './launcherPage'
import { DemoProgram, eventually, Program } from './program'
import { ShellPage, Wire } from './shellPage'

// A second agent, a process of its own with files of its own, is paired, used, lost, found again and forgotten.
const program = new DemoProgram('workstation')
const far = new Far()
const browser = new Browser()

afterAll(() => far.close())
stage(program, browser, { prepare: () => far.start() })

const agentState = async (name: string) => (await program.agents()).find((a) => a.name === name)?.connection.state

/** Pairs a program with the agent by a code, as a script would. */
async function pair(by: Program, code: string): Promise<void> {
  const { id } = await by.call<Operation>('POST', '/agents', { address: far.address, name: 'shared' })
  const asked = await eventually(
    'the code is asked for',
    async () => (await by.call<Operation[]>('GET', '/operations')).find((o) => o.id === id)?.prompt,
  )
  await by.call('POST', `/operations/${id}/answer`, { prompt: asked.id, text: code })
  await eventually(
    'it is paired',
    async () => (await by.agents()).find((a) => a.name === 'shared')?.connection.state === 'connected',
  )
}

async function forget(by: Program): Promise<void> {
  await by.call('POST', '/agents/shared/remove', {})
  await eventually('it is forgotten', async () => (await by.agents()).length === 1)
}

describe('a shared agent', () => {
  const guest = new Program('sim')
  afterAll(() => guest.close())

  it('shows whoever rules it who is let in, who may hold what and who did what', async () => {
    await guest.start()
    await pair(program, far.code())
    await pair(guest, far.code('ann'))
    await guest.running({ name: 'anns-own', agent: 'shared', image: 'python:3.12' })
    const page = await browser.page(program, '/agents/shared?part=people')
    const devices = page.getByRole('region', { name: 'Paired computers' })
    await devices.getByText('ann · User').waitFor()
    await devices.getByText('this computer').waitFor()
    await devices.getByText('slipway agent pair').waitFor()

    await page.getByRole('button', { name: 'Add a limit' }).click()
    const dialog = page.getByRole('dialog', { name: 'Limit what a person can use' })
    await dialog.getByRole('combobox', { name: 'Person' }).fill('ann')
    await dialog.getByRole('spinbutton', { name: 'Sessions' }).fill('1')
    await dialog.getByRole('spinbutton', { name: 'Memory' }).fill('8')
    await picture(page, 'agent-limit')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.locator('[data-owner="ann"]').getByText('1 session · 8 GiB memory').waitFor()
    await picture(page, 'agent-people')
    const second = await guest.launch({ name: 'anns-second', agent: 'shared', image: 'python:3.12' })
    await eventually(
      'it waits for the limit',
      async () => (await guest.session(second.id)).wait?.code === 'scheduler_wait_limit',
    )

    await page.goto(`${program.url}/launcher`)
    await choose(page, 'Machine', 'shared')
    await page.getByRole('textbox', { name: 'Owner' }).fill('ann')
    await step(page, 'environment').click()
    await page.getByText('Enter manually', { exact: true }).click()
    await page.getByRole('combobox', { name: 'Image' }).fill('python:3.12')
    await page.keyboard.press('Tab')
    await enterMemory(page, 9 * 1024)
    await page.getByText('Your limit here is 8 GiB of memory').first().waitFor()
    await picture(page, 'launcher-for-ann')

    await page.goto(`${program.url}/agents/shared?part=log`)
    const line = page.getByRole('row').filter({ hasText: 'anns-own' }).filter({ hasText: 'Launched' })
    await line.getByText('ann User').waitFor()
    await line.getByText('127.0.0.1').waitFor()
    await page.getByRole('row').filter({ hasText: 'Changed the limits of' }).waitFor()
    await picture(page, 'agent-log')

    await page.getByRole('tab', { name: 'People and computers' }).click()
    await devices
      .getByRole('listitem')
      .filter({ hasText: 'ann · User' }) // a key may have the three letters, too
      .getByRole('button', { name: /^Revoke/ })
      .click()
    await page
      .getByRole('dialog', { name: /^Revoke .*\?$/ })
      .getByRole('button', { name: 'Revoke' })
      .click()
    await devices.getByText('ann · User').waitFor({ state: 'detached' })
    await eventually(
      'ann is let in no more',
      async () => (await guest.agents()).find((a) => a.name === 'shared')?.connection.state !== 'connected',
    )
    const turned = await browser.page(program, '/agents')
    await turned.getByRole('article', { name: 'shared' }).waitFor()
    await picture(turned, 'agents')
    await program.endAll()
    await forget(guest)
    await forget(program)
  })
})

describe('another agent', () => {
  it('is paired by a code, runs a session, is greyed while away, reconnects by itself and is removed', async () => {
    const page = await browser.page(program, '/agents')
    await page.getByText('No other machines yet').waitFor()
    await page.getByRole('button', { name: 'Add a machine' }).first().click()
    await page.getByRole('textbox', { name: 'Address' }).fill('ftp://lab')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('Start with ssh://').waitFor()
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
    await card.getByText(/\d m?s latency/).waitFor()
    await page.getByRole('button', { name: 'Run checks' }).click()
    await page.getByText('Container engine').waitFor()
    await picture(page, 'agent-detail')

    await page.goto(`${program.url}/launcher`)
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
    await row(page, 'far-away')
      .getByText(/Last heard/)
      .waitFor()
    await eventually('no terminal is offered', () =>
      row(page, 'far-away').getByRole('button', { name: 'Terminal' }).isDisabled(),
    )
    await page.getByRole('button', { name: '1 machine not connected' }).click()
    await page.getByRole('button', { name: 'Retry lab now' }).waitFor()
    await picture(page, 'agent-gone')
    await page.keyboard.press('Escape')

    await far.start()
    await row(page, 'far-away').getByText('Running').waitFor()
    await eventually(
      'the row is live again',
      async () =>
        (await row(page, 'far-away')
          .getByText(/Last heard/)
          .count()) === 0,
    )
    await page.getByRole('button', { name: 'Connected' }).waitFor()
    await eventually('it is connected', async () => (await agentState('lab')) === 'connected')
    await program.endAll()

    await far.stop()
    far.loseKey()
    await far.start()
    await page.goto(`${program.url}/agents/lab`)
    const other = page.getByRole('alertdialog', { name: 'The key of this agent has changed' })
    await other.waitFor()
    await page
      .getByRole('button', { name: 'Needs your answer' })
      .or(page.getByText('Needs your answer').first())
      .first()
      .waitFor()
    await picture(page, 'agent-other-key')
    expect(await agentState('lab')).toBe('question')
    await other.getByRole('button', { name: 'Accept the new key' }).click()
    await eventually('it is connected', async () => (await agentState('lab')) === 'connected')

    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    const question = page.getByRole('dialog', { name: 'Remove lab?' })
    await picture(page, 'agent-remove')
    await question.getByRole('button', { name: 'Remove', exact: true }).click()
    await eventually('it is forgotten', async () => (await program.agents()).length === 1)
    await page.getByText('Machine lab not found').waitFor()
  })
})
