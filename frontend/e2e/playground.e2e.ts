import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Service, Settings } from '@/api/types.gen'
import { faults } from './axe'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// The demo serves a simulated model on the lab server, behind the tunnel. A second one is made for the comparison.
const program = new DemoProgram('lab', 1, { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
const browser = new Browser()

stage(program, browser)

const service = async (name: string) => (await program.call<Service[]>('GET', '/services')).find((s) => s.name === name)

async function inState(name: string, state: string): Promise<Service> {
  return eventually(`${name} is ${state}`, async () => {
    const one = await service(name)
    return one?.state === state && one
  })
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt', exact: true })

async function ask(page: Page, prompt: string): Promise<void> {
  await field(page).fill(prompt)
  await field(page).press('Enter')
}

const answered = (page: Page, name: string, times = 1) =>
  page
    .getByRole('button', { name: `Copy the answer of ${name}` })
    .nth(times - 1)
    .waitFor()

beforeAll(async () => {
  const { revisions, agent } = await inState('assistant', 'READY')
  const spec = { ...revisions[0]!.spec, agent, name: '', accelerator: undefined }
  await program.call('POST', '/services', { name: 'second', spec, replicas: 1 })
  await inState('second', 'READY')
})

describe('the playground', () => {
  it('talks to the service that its detail shows', async () => {
    const page = await browser.page(program, '/services/assistant')
    await page.getByRole('dialog', { name: 'assistant' }).getByRole('button', { name: 'Playground' }).click()
    await page.getByText('Ask the model something').waitFor()
    await picture(page, 'playground-empty')
    await ask(page, 'Hello there')
    await answered(page, 'assistant')
    await page.getByText(/This is a simulated model: nothing is computed\. Words in your prompt: 2\./).waitFor()
    await page.getByText('2 tokens', { exact: true }).waitFor()
    expect(await page.getByRole('status').filter({ hasText: 'assistant answered.' }).count()).toBe(1)

    // The conversation goes on where it was after a look at another page.
    await ask(page, 'And once more')
    await page.getByRole('link', { name: 'Machines' }).click()
    await page.getByRole('heading', { name: 'Machines' }).first().waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').first().fill('playground')
    await page.getByRole('option', { name: /playground/ }).click()
    await answered(page, 'assistant', 2)
    await page.getByText('Hello there').waitFor()
  })

  it('stops a model that is answering', async () => {
    const before = (await service('assistant'))!.traffic
    const page = await browser.page(program, '/playground?service=assistant')
    await ask(page, 'Write 4000 words about ships.')
    await page.getByText(/This is a simulated model/).waitFor()
    await eventually('it is answered', async () => (await service('assistant'))!.traffic.outstanding === 1)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('You stopped this answer.').waitFor()
    await eventually('no replica answers', async () => (await service('assistant'))!.traffic.outstanding === 0)
    const after = (await service('assistant'))!.traffic
    // It was not answered to the end, and that is no failure of the service.
    expect(after.completionTokens - before.completionTokens).toBeLessThan(4000)
    expect(after.failed).toBe(before.failed)
  })

  it('compares two services', async () => {
    const page = await browser.page(program, '/playground?service=assistant')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByPlaceholder('Message both services').waitFor()
    await ask(page, 'Which of you is faster?')
    await answered(page, 'assistant')
    await answered(page, 'second')
    await picture(page, 'playground-compare')
    expect(await page.getByText('5 tokens', { exact: true }).count()).toBe(2)
    expect(await page.getByText(/[\d.]+ tokens\/s/).count()).toBe(2)
  })

  it('says why a service does not answer', async () => {
    await program.call('PATCH', '/services/second', { replicas: 0 })
    await inState('second', 'STOPPED')
    const page = await browser.page(program, '/playground?service=second')
    await ask(page, 'Are you there?')
    await page.getByText('second is stopped.').waitFor()
    await page.getByText(/Start it to use it\./).waitFor()
    await picture(page, 'playground-stopped')
    await program.call('PATCH', '/services/second', { replicas: 1 })
    await page.locator('[data-state="READY"]').waitFor()
    await page.getByRole('button', { name: 'Regenerate the answer of second' }).click()
    await answered(page, 'second')
  })

  it('says that an answer broke off when its replica ends', async () => {
    await program.call('PATCH', '/services/second', { replicas: 1 })
    const { live } = await inState('second', 'READY')
    const page = await browser.page(program, '/playground?service=second')
    await ask(page, 'Write 4000 words about ships.')
    await page.getByText(/This is a simulated model/).waitFor()
    await program.call('POST', `/sessions/${live[0]!.session}/terminate`, { forced: true })
    await page.getByText('Broken off.').waitFor()
    await picture(page, 'playground-broken')
  })

  it('is without fault for axe in both themes, empty and full', async () => {
    const settings = await program.call<Settings>('GET', '/settings')
    await program.call('PUT', '/settings', { ...settings, theme: 'system' })
    const page = await browser.page(program, '/playground?service=assistant&beside=assistant')
    await field(page).waitFor()
    const found: string[] = []
    for (const full of [false, true]) {
      if (full) {
        await ask(page, 'Hello')
        await answered(page, 'assistant', 2)
      }
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' })
        found.push(...(await faults(page)).map((fault) => `${colorScheme}: ${fault}`))
      }
    }
    expect(found).toEqual([])
  })
})
