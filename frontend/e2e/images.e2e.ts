import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Environment, Image, Operation, Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { enter, launch, row } from './launcherPage'
import { DemoProgram } from './program'

// Images from their pull to their end, and one that is made of a session in between.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const images = () => program.call<Image[]>('GET', '/images')
const made = async () => (await images()).filter((image) => image.origin)
const operations = () => program.call<Operation[]>('GET', '/operations')

const entry = (page: Page, text: string) => page.locator('[data-row-key]', { hasText: text })

async function start(page: Page, name: string): Promise<Session> {
  await page.goto(`${program.url}/launcher`)
  await enter(page, { name, image: 'python:3.12', memory: 256 })
  await launch(page)
  await row(page, name).getByText('Running').waitFor()
  const session = (await program.sessions()).find((s) => s.name === name)
  if (!session) throw new Error(`there is no session ${name}`)
  return session
}

describe('images', () => {
  it('are pulled with bytes, layers and rate, cancelled, and pulled again', async () => {
    const page = await browser.page(program, '/images')
    await page.getByRole('button', { name: 'Pull an image' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox').fill('Not An Image')
    await dialog.getByRole('button', { name: 'Pull', exact: true }).click()
    await dialog.getByText('is not the name of an image').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await operations()).toEqual([])

    const pull = async (image: string) => {
      await page.getByRole('button', { name: 'Pull an image' }).click()
      await dialog.getByRole('textbox').fill(image)
      await dialog.getByRole('button', { name: 'Pull', exact: true }).click()
    }
    // So large that it comes for minutes.
    const large = 'pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel'
    for (const ended of [['cancelled'], ['cancelled', 'cancelled']]) {
      await pull(large)
      const work = page.locator('[data-operation]', { hasText: 'Pull the image' })
      await work.getByText(/of .* GiB.*MiB\/s/).waitFor()
      await work.getByText(/\d of \d layers/).waitFor()
      await picture(page, 'images-pull')
      await work.getByRole('button', { name: 'Cancel' }).click()
      await work.waitFor({ state: 'detached' })
      expect((await operations()).map((o) => o.state)).toEqual(ended)
      expect((await images()).some((image) => image.refs.includes(large))).toBe(false)
    }

    await pull('python:3.11')
    await entry(page, 'python:3.11').waitFor()
  })

  it('are made of a session, offered, kept while they are used, and removed', async () => {
    const page = await browser.page(program, '/sessions')
    const session = await start(page, 'makes-one')
    await page.goto(`${program.url}/sessions/${session.id}`)
    const open = () => page.getByRole('button', { name: 'Commit', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: /Create an image/ })
    await open()
    await dialog.getByText('/home/work', { exact: true }).waitFor()
    await picture(page, 'commit-form')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await made()).toEqual([])
    expect((await operations()).filter((o) => o.kind === 'image-commit')).toEqual([])

    await open()
    await dialog.getByRole('textbox').fill('a.b')
    expect(await dialog.getByRole('button', { name: 'Create image' }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('Fresh-1')
    await dialog.getByRole('button', { name: 'Create image' }).click()
    await dialog.getByText(/slipway-custom\/.*:Fresh-1/).waitFor()
    await picture(page, 'commit-done')
    const [image] = await made()
    expect(image?.origin).toMatchObject({ name: 'Fresh-1', sessionName: 'makes-one', base: 'python:3.12' })
    const families = await program.call<Environment[]>('GET', '/environments')
    expect(families.find((f) => f.id === 'python')?.versions.some((v) => v.title === 'Fresh-1' && v.custom)).toBe(true)

    await dialog.getByRole('link', { name: 'Launch it' }).click()
    await page.getByText('Fresh-1').first().waitFor()
    await page.getByText('Customized').first().waitFor()
    await picture(page, 'launcher-customized')

    const again = await program.call<Session>('POST', '/sessions', {
      spec: { name: 'uses-it', image: image?.refs[0], resources: { cpu: 1, memory: 268435456 } },
    })
    await page.goto(`${program.url}/images`)
    const shown = entry(page, 'Fresh-1')
    await shown.getByRole('link', { name: 'uses-it' }).waitFor()
    expect(await shown.getByRole('button', { name: /^Remove/ }).isDisabled()).toBe(true)
    await picture(page, 'images-used')
    await program.call('POST', `/sessions/${again.id}/terminate`, { forced: true })
    await program.call('POST', `/sessions/${session.id}/terminate`, { forced: true })
    await expect
      .poll(async () => (await program.sessions()).filter((s) => !s.terminatedAt).length, { timeout: 60_000 })
      .toBe(0)
    await page.reload()
    await shown.getByRole('button', { name: /^Remove/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await made()).toHaveLength(1)
    await shown.getByRole('button', { name: /^Remove/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await shown.waitFor({ state: 'detached' })
    expect(await made()).toEqual([])
  })

  it('are cleaned up after a look at what would go', async () => {
    const page = await browser.page(program, '/images')
    await entry(page, 'ubuntu:24.04').waitFor()
    await page.getByRole('button', { name: 'Clean up' }).click()
    const dialog = page.getByRole('dialog')
    await picture(page, 'images-cleanup')
    expect(await dialog.getByRole('button', { name: /^Remove/ }).isDisabled()).toBe(true)
    await dialog.getByRole('checkbox', { name: 'ubuntu:24.04' }).check()
    await dialog.getByText(/Frees at least/).waitFor()
    await dialog.getByRole('button', { name: 'Remove 1 image' }).click()
    await entry(page, 'ubuntu:24.04').waitFor({ state: 'detached' })
    expect((await images()).some((image) => image.refs.includes('ubuntu:24.04'))).toBe(false)
    expect((await images()).some((image) => image.refs.includes('python:3.12'))).toBe(true)
  })
})
