import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { NewToken, Service, ServiceReport } from '@/api/types.gen'
import { Browser, download, picture } from './browser'
import { makeFolder } from './foldersPage'
import { stage } from './hooks'
import { escape } from './keys'
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

  it('tell what happened to them, and have a recipe', async () => {
    await ready()
    const page = await browser.page(program, '/services/assistant?view=events')
    const drawer = page.getByRole('dialog', { name: 'assistant' })
    const events = drawer.getByRole('list', { name: 'Events' })
    await events.getByText('All replicas answer.').waitFor()
    await events.getByText('It was created.').waitFor()
    await picture(page, 'services-events')
    await drawer.getByRole('button', { name: 'Recipe' }).click()
    await page.getByText('name: assistant').waitFor()
    await picture(page, 'services-recipe')
    await escape(page)
    await events.getByRole('link', { name: 'Log' }).first().click()
    await page.waitForURL(/view=logs/)
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
    await escape(page)
    await drawer.getByText('editor').first().waitFor()

    const { id, text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'script' })
    const address = (await assistant())?.address ?? ''
    const headers = { Authorization: `Bearer ${text}` }
    const models = async () => (await fetch(`${address}/models`, { headers })).status
    expect(await models()).toBe(200)
    await program.call('DELETE', `/services/assistant/tokens/${id}`)
    expect(await models()).toBe(401)
  })

  it('are scaled by rules, whose values are shown', async () => {
    await ready()
    const page = await browser.page(program, '/services/assistant?view=settings')
    const rules = page.getByRole('region', { name: 'Scaling' })
    const rule = (number: number) => rules.getByRole('listitem', { name: `Rule ${number}` })
    await rule(1).getByText('Now 0', { exact: true }).waitFor()
    await rule(1).getByText('At the minimum').waitFor()
    await rules.getByRole('button', { name: 'Add a rule' }).click()
    const up = rule(2).getByRole('spinbutton', { name: 'Add above, Rule 2' })
    await up.fill('')
    await rule(2).getByRole('spinbutton', { name: 'Remove below, Rule 2' }).fill('')
    await rules.getByRole('button', { name: 'Save rules' }).click()
    await rule(2).getByText('Enter a number to add above, to remove below, or both.').waitFor()
    await picture(page, 'services-rules-fault')
    await up.fill('8')
    await rules.getByRole('button', { name: 'Save rules' }).click()
    await rule(2).getByText('Now 0', { exact: true }).waitFor()
    await rule(2).getByText('No change').waitFor()
    await picture(page, 'services-rules')
    const stored = await assistant()
    expect(stored?.rules?.map((one) => one.metricName)).toEqual(['llamacpp:requests_deferred', 'outstanding'])
    expect(stored?.revisions).toHaveLength(1)
    await page.getByRole('switch', { name: 'Sleep to make room' }).click()
    await eventually('the assistant may sleep', async () => (await assistant())?.maySleep === true)
    await rules.getByRole('button', { name: 'Remove Rule 2' }).click()
    await rules.getByRole('button', { name: 'Save rules' }).click()
    await eventually('a rule is removed', async () => (await assistant())?.rules?.length === 1)
  })

  it('begin in the launcher, and get rules in the form', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByText('Serves a model.').waitFor()
    await picture(page, 'launcher-type')
    await page.getByRole('link', { name: /^Inference/ }).click()
    await page.waitForURL(/\/services\/new/)
    const card = page.getByRole('region', { name: 'Scaling' })
    await card.getByRole('button', { name: 'Add a rule' }).click()
    await card.getByText('Above 4: adds 1 replica, up to 4. Below 1 for 6 min: removes 1 replica, down to 1.').waitFor()
    await card.scrollIntoViewIfNeeded()
    await picture(page, 'services-form-rules')
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

  it('let a request wait while the tunnel is cut, at the same address, and others are served', async () => {
    await ready()
    const { text } = await program.call<NewToken>('POST', '/services/assistant/tokens', { name: 'patient' })
    const address = (await assistant())?.address ?? ''
    const listed = (at = address) => fetch(`${at}/models`, { headers: { Authorization: `Bearer ${text}` } })
    expect((await listed()).status).toBe(200)
    const onTheLab = (await assistant())?.addresses.find((at) => at.from === 'machine')?.url
    await program.call('PUT', '/demo/lid', { closed: true })
    let waits = true
    const waiting = listed().finally(() => (waits = false))
    await setTimeout(10_000)
    expect(waits).toBe(true)
    expect((await listed(onTheLab)).status).toBe(200)
    await program.call('PUT', '/demo/lid', { closed: false })
    expect((await waiting).status).toBe(200)
    await ready()
    expect((await assistant())?.address).toBe(address)
  })

  it('are made from the definition in a folder, whose mistakes are shown with their lines', async () => {
    const dir = join(program.disk, 'scratch', 'defined')
    mkdirSync(dir, { recursive: true })
    const definition = (port: string) =>
      writeFileSync(
        join(dir, 'model-definition.yaml'),
        `models:
  - name: tiny-chat
    model_path: /models
    service:
      pre_start_actions:
        - action: write_file
          args: { filename: config, body: ["model={model_path}/tiny.gguf"] }
        - action: run_command
          args: { command: [cp, config, copied] }
      start_command: llama-server --model '{model_path}/tiny.gguf' --alias tiny-chat --port 8080
      ${port}
      health_check: { path: /health, interval: 5, initial_delay: 120 }
`,
      )
    definition('prot: 8080')
    await makeFolder(program, 'defined', '/scratch/defined')
    const page = await browser.page(program, '/services/new?runtime=custom')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('defined-chat')
    await page.getByRole('textbox', { name: 'Image' }).fill('python:3.12')
    await page.getByRole('combobox', { name: 'Folder' }).click()
    await page.getByTitle('defined').click()
    const read = page.getByRole('button', { name: 'Read model-definition.yaml' })
    await read.click()
    const mistakes = page.getByRole('alert')
    await mistakes.getByText('model-definition.yaml:11').waitFor()
    await mistakes.getByText('"prot" is not a field here. Did you mean port?').waitFor()
    await mistakes.getByText('port is missing. Add it here.').waitFor()
    await picture(page, 'services-definition-mistakes')

    definition('port: 8080')
    await read.click()
    await page.getByText('Filled in from model-definition.yaml.').waitFor()
    const preview = page.getByRole('region', { name: 'Each replica runs' })
    await preview.getByText('run_command cp config copied').waitFor()
    expect(await page.getByRole('spinbutton', { name: 'Port' }).inputValue()).toBe('8080')
    await page.getByRole('spinbutton', { name: 'CPUs' }).fill('1')
    await page.getByRole('spinbutton', { name: 'Memory' }).fill('0.5')
    await picture(page, 'services-definition')
    await page.getByRole('button', { name: 'Create service' }).click()
    const drawer = page.getByRole('dialog', { name: 'defined-chat' })
    await drawer.waitFor()
    const service = await eventually('the service of the definition is ready', async () => {
      const all = await program.call<Service[]>('GET', '/services')
      const one = all.find(({ name }) => name === 'defined-chat')
      if (one?.state === 'FAILED') throw new Error(one.why)
      return one?.state === 'READY' && one
    })
    expect(service.revisions[0]?.spec.serving).toMatchObject({ models: ['tiny-chat'], preStart: [{}, {}] })
    await drawer.getByText('Ready', { exact: true }).first().waitFor()
    await picture(page, 'services-definition-ready')
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
