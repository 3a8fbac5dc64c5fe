import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Image } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { DockerGate } from './dockerGate'
import { watchOver } from './hooks'
import { enter, launch, row } from './launcherPage'
import { minimalImage, Program } from './program'

// What becomes of what a session changed, on real Docker: an image as it ends, or a container that is kept.
const gate = new DockerGate(process.env.SLIPWAY_TEST_DOCKER ?? '')
const program = new Program('docker', { DOCKER_HOST: gate.address })
const name = `ends-${Date.now().toString(36)}`
let browser: Browser

const made = async () =>
  (await program.call<Image[]>('GET', '/images')).filter((image) => image.origin?.sessionName === name)

beforeAll(async () => {
  await gate.listen()
  await program.start()
  browser = await Browser.open({ width: 1280, height: 800 })
})
afterAll(async () => {
  gate.full = false
  for (const image of await made()) await program.cli('image', 'rm', '--yes', image.id)
  await browser?.close()
  await program.close()
  gate.close()
})
afterEach(() => program.endAll())
watchOver(() => browser)

/** Has a running session write a file outside of its home, ends it in its drawer, and waits for its end. */
async function endOne(page: Page, id: string): Promise<void> {
  await program.cli('exec', id, '--', 'sh', '-c', `echo ${id} > /tmp/${id}`)
  await page.goto(`${program.url}/sessions/${id}`)
  await page.getByRole('dialog', { name, exact: true }).getByRole('button', { name: 'Terminate', exact: true }).click()
  const question = page.getByRole('dialog', { name: `Terminate ${name}?` })
  await question.getByText('Its changes are saved as an image first').waitFor()
  await question.getByRole('button', { name: 'Terminate' }).click()
  await program.status(id, 'TERMINATED')
}

describe('a session that becomes an image as it ends', () => {
  it('is asked for in the launcher, keeps what was changed, and keeps the newest alone', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByRole('checkbox', { name: 'Save as an image' }).check()
    await page.getByRole('spinbutton', { name: 'Images to keep' }).fill('1')
    await enter(page, { name, image: minimalImage, memory: 256 })
    await page.getByText(/Saves an image and keeps the newest/).waitFor()
    await page.getByText('--commit-on-end 1').waitFor()
    await launch(page)
    await row(page, name).getByText('Running').waitFor()
    const first = (await program.sessions()).find((s) => s.name === name)?.id ?? ''
    await endOne(page, first)
    await page.getByText('Saved as an image when it ended').waitFor()
    await picture(page, 'ends-image')
    const [image] = await made()
    expect(image?.origin).toMatchObject({ name: `${name}-1`, session: first, series: name })

    const second = await program.running({ name, image: image?.refs[0] ?? '', commitOnEnd: 1 })
    expect(await program.cli('exec', second.id, '--', 'cat', `/tmp/${first}`)).toBe(`${first}\n`)
    await endOne(page, second.id)
    const third = await program.running({ name, commitOnEnd: 1 })
    await endOne(page, third.id)
    expect((await made()).map((i) => i.origin?.name)).toEqual([`${name}-3`])
    await page.goto(`${program.url}/sessions/${third.id}?view=history`)
    await page.getByRole('button', { name: 'Show the steps of Terminate' }).click()
    await page.getByText(`removed ${name}-2`).waitFor()
  })

  it('keeps its container while the disk is full, through a kill, until its image is made', async () => {
    const page = await browser.page(program, '/sessions')
    const session = await program.running({ name, commitOnEnd: 1 })
    gate.full = true
    await endOne(page, session.id)
    await page.getByText('Could not create an image. The container is kept').waitFor()
    await page.getByText('disk_write_no-space').waitFor()
    await picture(page, 'ends-kept')
    await program.kill()
    await program.start()
    expect((await program.session(session.id)).endImage).toMatchObject({ state: 'failed', kept: true })

    gate.full = false
    await page.reload()
    await page.getByRole('button', { name: 'Create image…' }).click()
    const dialog = page.getByRole('dialog', { name: `Create an image from ${name}` })
    await dialog.getByRole('button', { name: 'Create image', exact: true }).click()
    await dialog.getByText('Launch it').waitFor()
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click()
    await page.getByText('Saved as an image when it ended').waitFor()
    expect((await program.session(session.id)).endImage).toMatchObject({ state: 'done', kept: false })
    const [image] = (await made()).filter((i) => i.origin?.session === session.id)
    const next = await program.running({ image: image?.refs[0] ?? '' })
    expect(await program.cli('exec', next.id, '--', 'cat', `/tmp/${session.id}`)).toBe(`${session.id}\n`)
  })
})
