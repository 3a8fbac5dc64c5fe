import { execFile } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { NewToken, Service } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// The demo serves a simulated model on the lab server, behind the tunnel.
const program = new DemoProgram('lab', 1, { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
const browser = new Browser()

stage(program, browser)

const assistant = async () => (await program.call<Service[]>('GET', '/services')).find((s) => s.name === 'assistant')

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

  it('answer the client library of OpenAI', async () => {
    await ready()
    const { text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'client' })
    const script = fileURLToPath(new URL('foreignClient.mjs', import.meta.url))
    const env = { ...process.env, OPENAI_BASE_URL: (await assistant())?.address, OPENAI_API_KEY: text }
    await promisify(execFile)(process.execPath, [script, 'assistant'], { env })
    await promisify(execFile)(process.execPath, [script, '--embed', 'assistant'], { env })
    // Nobody waits for the long answers that were left.
    await eventually('nothing is under way', async () => (await assistant())?.traffic.outstanding === 0)
    expect((await assistant())?.traffic.requests).toBeGreaterThanOrEqual(9)
  })

  it('let a request wait while the tunnel is cut, at the same address', async () => {
    await ready()
    const { text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'patient' })
    const address = (await assistant())?.address ?? ''
    const listed = () => fetch(`${address}/models`, { headers: { Authorization: `Bearer ${text}` } })
    expect((await listed()).status).toBe(200)
    await program.call('PUT', '/demo/lid', { closed: true })
    let waits = true
    const waiting = listed().finally(() => (waits = false))
    await setTimeout(10_000)
    expect(waits).toBe(true)
    await program.call('PUT', '/demo/lid', { closed: false })
    expect((await waiting).status).toBe(200)
    await ready()
    expect((await assistant())?.address).toBe(address)
  })
})
