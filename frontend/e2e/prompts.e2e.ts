import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { watchOver } from './hooks'
import { Lab, password } from './lab'
import { eventually, Program } from './program'

// A machine whose sshd asks for a password and a one-time code: each question of the real ssh is shown in the page.
const lab = new Lab('code')
const program = new Program('sim', lab.env)
let browser: Browser

beforeAll(async () => {
  await lab.open()
  lab.docker(process.env.SLIPWAY_TEST_DOCKER ?? '')
  await program.start()
  browser = await Browser.open()
})
afterAll(async () => {
  await browser?.close()
  await program.close()
  await lab.close()
})
watchOver(() => browser)

const prompt = (page: Page, kind: string) => page.locator(`[data-prompt="${kind}"]`)
const answer = async (page: Page, kind: string, text: string) => {
  await prompt(page, kind).getByRole('textbox').fill(text)
  await prompt(page, kind).getByRole('textbox').press('Enter')
}

const connection = async () => (await program.agents()).find((a) => a.name === 'lab')?.connection
const reached = async () => (await connection())?.state === 'connected'

/** The command lines of everything that runs. */
const commandLines = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(join('/proc', pid, 'cmdline'), 'utf8')
      } catch {
        return '' // it has ended
      }
    })
    .join('\n')

describe('a machine that asks for a password and a code', () => {
  it('is left alone when a question is not answered', async () => {
    const page = await browser.page(program, '/agents?add=1')
    await page.getByRole('textbox', { name: 'Address' }).fill('ssh://lab')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await prompt(page, 'host-key').getByRole('button', { name: 'Trust' }).click()
    await prompt(page, 'password').waitFor()
    await picture(page, 'prompt-password')
    await page.locator('[data-operation]').getByRole('button', { name: 'Cancel' }).first().click()
    await prompt(page, 'password').waitFor({ state: 'detached' })
    expect((await program.agents()).map((a) => a.name)).not.toContain('lab')
    expect(lab.processes()).toEqual([])
  })

  it('is added when both are right, and nobody else learns them', async () => {
    const page = await browser.page(program, '/agents?add=1')
    await page.getByRole('textbox', { name: 'Address' }).fill('ssh://lab')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await prompt(page, 'password').waitFor()
    await answer(page, 'password', 'wrong')
    await prompt(page, 'password').getByText('Not accepted').waitFor()
    await answer(page, 'password', password)
    await prompt(page, 'mfa').waitFor()
    await picture(page, 'prompt-code')
    expect(commandLines()).not.toContain(password)
    const { code } = lab
    await answer(page, 'mfa', code)
    await page.getByRole('button', { name: 'Show lab' }).waitFor()
    await picture(page, 'prompt-added')
    await page
      .locator('[data-operation]')
      .getByText(/^Connected[.,]/) // with the time there and back once that is measured
      .waitFor()
    await eventually('the lab is reached', reached)
    expect(commandLines()).not.toContain(password)
    const files = [program.home, lab.home]
      .flatMap((dir) => readdirSync(dir, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
    expect(files.map((file) => file.name)).toContain('slipway.log')
    for (const file of files)
      expect(readFileSync(join(file.parentPath, file.name)).includes(password), file.name).toBe(false)
  })

  it('is not reached by itself when the way was cut, says so, and asks when it is told to connect', async () => {
    const page = await browser.page(program, '/agents')
    const card = page.locator('[data-agent="lab"]')
    await card.getByText('Connected', { exact: true }).waitFor()
    lab.cable.cut()
    lab.cable.mend()
    await card.getByText('The login on this machine asks for your input.').waitFor()
    await picture(page, 'prompt-waits')
    await card.getByRole('button', { name: 'Connect' }).click()
    await prompt(page, 'password').waitFor()
    await picture(page, 'prompt-again')
    await answer(page, 'password', password)
    await prompt(page, 'mfa').waitFor()
    await answer(page, 'mfa', lab.code)
    await eventually('the lab is reached again', reached)
  })
})
