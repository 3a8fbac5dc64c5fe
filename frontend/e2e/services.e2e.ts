import { describe, expect, it } from 'vitest'
import type { NewToken, Service, ServiceReport } from '@/api/types.gen'
import { Browser, download, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// The demo serves a simulated model on the lab server, behind the tunnel.
const program = new DemoProgram('lab', 1, { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
const browser = new Browser()

stage(program, browser)

const assistant = async () => (await program.call<Service[]>('GET', '/services')).find((s) => s.name === 'assistant')

const accounts = async (by: string) =>
  (await program.call<ServiceReport>('GET', `/usage/services?by=${by}`)).rows.filter((r) => r.service === 'assistant')

const ready = () => eventually('the assistant is ready', async () => (await assistant())?.state === 'READY')

describe('services', () => {
  it('are listed with their state and address, and show how to use them', async () => {
    await ready()
    const page = await browser.page(program, '/services')
    await row(page, 'assistant').getByText('Ready', { exact: true }).waitFor()
    await row(page, 'assistant').getByText('1 of 1', { exact: true }).waitFor()
    await picture(page, 'services-list')
    await row(page, 'assistant').getByRole('link', { name: 'assistant' }).click()
    const drawer = page.getByRole('dialog', { name: 'assistant' })
    await drawer
      .getByText((await assistant())?.address ?? 'no address')
      .first()
      .waitFor()
    await picture(page, 'services-drawer')
  })

  it('give out tokens, which are seen once and revoked at once', async () => {
    await ready()
    const page = await browser.page(program, '/services/assistant')
    const drawer = page.getByRole('dialog', { name: 'assistant' })
    await drawer.getByRole('tab', { name: 'Tokens' }).click()
    await drawer.getByRole('button', { name: 'New token…' }).first().click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('editor')
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByText('Copy it now.').waitFor()
    await picture(page, 'services-token')
    await page.keyboard.press('Escape')
    await drawer.getByText('editor').first().waitFor()

    const { id, text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'script' })
    const address = (await assistant())?.address ?? ''
    const headers = { Authorization: `Bearer ${text}` }
    const models = async () => (await fetch(`${address}/models`, { headers })).status
    expect(await models()).toBe(200)
    await program.call('DELETE', `/services/assistant/tokens/${id}`)
    expect(await models()).toBe(401)
  })

  it('answer a foreign client of OpenAI, plain and in a stream', async () => {
    await ready()
    const { text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'client' })
    const address = (await assistant())?.address ?? ''
    const messages = [{ role: 'user', content: 'Hi' }]
    const ask = (stream: boolean) =>
      fetch(`${address}/chat/completions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${text}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ model: 'assistant', stream, max_tokens: 12, messages }),
      })
    const plain = (await (await ask(false)).json()) as { choices: { message: { content: string } }[] }
    expect(plain.choices[0]?.message.content).toContain('simulated')
    expect(await (await ask(true)).text()).toMatch(/data: \[DONE\]\n\n$/)
  })

  it('are counted by token, which stays when it is revoked, with the energy of their replicas', async () => {
    await ready()
    const { id, text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'counted' })
    const answer = await fetch(`${(await assistant())?.address ?? ''}/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${text}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', stream: true, messages: [{ role: 'user', content: 'Hello there' }] }),
    })
    expect(await answer.text()).toContain('[DONE]')
    await program.call('DELETE', `/services/assistant/tokens/${id}`)
    await eventually('the request is counted', async () => {
      const one = (await accounts('token')).find((r) => r.tokenName === 'counted')
      return one?.answered === 1 && one.completionTokens > 0 && one.firstWord.p50Ms > 0
    })
    await eventually('its energy is known', async () => ((await accounts('service'))[0]?.whPerThousandTokens ?? 0) > 0)
    const page = await browser.page(program, '/usage?view=services')
    await page.getByText('assistant', { exact: true }).first().click()
    await page.getByText('Token counted').waitFor()
    await page.getByText('Revision 1', { exact: true }).waitFor()
    await picture(page, 'usage-services')
    const saved = await download(page, () => page.getByRole('button', { name: 'CSV' }).click())
    expect(saved.name).toMatch(/^slipway-services-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
    expect(saved.text.split('\n').some((line) => line.includes('assistant') && line.includes('counted'))).toBe(true)
  })
})
