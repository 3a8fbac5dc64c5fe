import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Folder, Image, Operation, Project, RecentProject } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { makeFolder } from './foldersPage'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// Where the image of a project on another machine is built.
const program = new DemoProgram('lab')
const browser = new Browser()
let far = ''

stage(program, browser, {})

/** Takes a picture on a small and a large screen, in light and dark. */
async function pictures(page: Page, name: string) {
  for (const [width, height] of [
    [1280, 800],
    [1920, 1080],
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' })
      await picture(page, `${name}-${width}-${colorScheme}`)
    }
  }
}

/** Makes a folder with a project here, and copies it to the other machine. */
async function copied(name: string): Promise<Folder> {
  const dir = join(program.disk, 'scratch', name)
  mkdirSync(dir)
  writeFileSync(join(dir, 'requirements.txt'), 'torch\n')
  const from = await makeFolder(program, name, `/scratch/${name}`)
  const body = { from: { folder: from.id, agent: from.agent }, to: { folder: name, agent: far } }
  const { id } = await program.call<Operation>('POST', '/files/copy', body)
  await eventually(`${name} is copied`, async () => {
    const { state } = await program.call<Operation>('GET', `/operations/${id}`)
    return state === 'done'
  })
  return program.call<Folder>('GET', `/folders/${name}?agent=${far}`)
}

async function opened(folder: Folder) {
  const known = await program.call<RecentProject>('POST', `/folders/${folder.id}/project/open`, {})
  const page = await browser.page(program, `/folders?reopen=${known.id}`)
  return { page, dialog: page.getByRole('dialog', { name: `Project ${folder.name}` }) }
}

beforeAll(async () => {
  far = (await program.agents()).find((a) => !a.local)?.name ?? ''
})

describe('the image of a project on another machine', () => {
  it('is built on this computer, if that is chosen, and sent', async () => {
    const folder = await copied('paper')
    const { page, dialog } = await opened(folder)
    await dialog.getByRole('radio', { name: `On ${far} Downloads` }).waitFor()
    await pictures(page, 'build-places')
    await dialog.getByRole('radio', { name: 'On this computer' }).click()
    await dialog.getByRole('button', { name: 'Build the image' }).click()
    await dialog.getByRole('button', { name: 'Launch a session' }).waitFor()
    await pictures(page, 'built-here')
    const [built] = await program.call<Operation[]>('GET', '/operations')
    expect(built?.steps.map(({ title, state }) => `${title}: ${state}`)).toContainEqual(
      expect.stringMatching(/^Send what is missing of .*: ok$/),
    )
    const found = await program.call<Project>('POST', `/folders/${folder.id}/project`, {})
    expect(found.present).toBe(true)
    const at = (await program.call<Image[]>('GET', '/images')).filter((i) => i.refs.includes(found.image))
    expect(at.map((i) => i.agent)).toContain(far)
  })

  it('is not built here while the files differ, and the choice says so', async () => {
    const folder = await copied('thesis')
    writeFileSync(join(program.disk, 'scratch', 'thesis', 'requirements.txt'), 'jax\n')
    const { page, dialog } = await opened(folder)
    const here = dialog.getByRole('radio', { name: 'On this computer The files of thesis' })
    await here.waitFor()
    expect(await here.isDisabled()).toBe(true)
    await pictures(page, 'build-places-differ')
  })

  it('is still offered there while the choices cannot be read', async () => {
    const folder = await copied('notes')
    let answer = () => {}
    const answered = new Promise<void>((resolve) => (answer = resolve))
    await browser.context.route('**/project/build/choices', async (route) => {
      await answered
      await route.fulfill({ status: 502, json: { code: 'server_answer_invalid', message: 'The machine is away.' } })
    })
    const { page, dialog } = await opened(folder)
    await dialog.getByText('Looking at what each place costs…').waitFor()
    await pictures(page, 'build-places-looking')
    answer()
    await dialog.getByText('The machine is away.').waitFor()
    await pictures(page, 'build-places-failed')
    expect(await dialog.getByRole('button', { name: 'Build the image' }).isEnabled()).toBe(true)
    await browser.context.unroute('**/project/build/choices')
  })
})
