import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Operation, Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { GitServer } from './gitServer'
import { stage } from './hooks'
import { row } from './launcherPage'
import { minimalImage, Program } from './program'

// A git repository behind a password becomes a project, and that a session on real Docker.
const dir = mkdtempSync(join(tmpdir(), 'slipway-clone-'))
const home = join(dir, 'home')
const program = new Program('docker', { HOME: home, GIT_CONFIG_NOSYSTEM: '1' })
const browser = new Browser()
const server = new GitServer()
let built = ''

beforeAll(async () => {
  mkdirSync(join(dir, 'work', 'demo'), { recursive: true })
  mkdirSync(home)
  writeFileSync(join(dir, 'work', 'demo', 'Dockerfile'), `FROM ${minimalImage}\nRUN echo made > /made\n`)
  await server.start(dir)
})
afterAll(() => {
  server.stop()
  if (built) execFileSync('docker', ['-H', process.env.SLIPWAY_TEST_DOCKER ?? '', 'rmi', '-f', built])
  rmSync(dir, { recursive: true, force: true })
})
stage(program, browser, { afresh: true })

const opening = (page: Page) => page.getByRole('dialog', { name: 'Open a project' })

async function answer(page: Page, kind: string, label: string, text: string): Promise<void> {
  const prompt = page.locator(`[data-prompt="${kind}"]`)
  await prompt.getByLabel(label).fill(text)
  await prompt.getByRole('button', { name: 'Continue' }).click()
}

describe('a repository', () => {
  it('is cloned from the Folders page, asks for its login, and becomes a session', async () => {
    const page = await browser.page(program, '/folders')
    await page.getByRole('button', { name: 'Open a project…' }).click()
    await opening(page).getByLabel('Address').fill('paper')
    await opening(page).getByRole('button', { name: 'Clone' }).click()
    await page.getByText('This is not the address of a git repository').waitFor()
    await picture(page, 'project-address')
    await opening(page).getByLabel('Address').fill(`${server.address}#demo`)
    await opening(page).getByRole('button', { name: 'Clone' }).click()
    await answer(page, 'username', 'Username', 'ada')
    await page.locator('[data-prompt="password"]').waitFor()
    await picture(page, 'project-login')
    await answer(page, 'password', 'Password', server.password)
    const project = page.getByRole('dialog', { name: 'Project paper' })
    expect(await project.getByLabel('Dockerfile', { exact: true }).innerText()).toContain('FROM ')
    await picture(page, 'project-clone')
    await project.getByRole('button', { name: 'Build the image' }).click()
    await project.getByRole('button', { name: 'Launch a session' }).click()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await page.waitForURL(/\/sessions/)
    const session = (await program.call<Session[]>('GET', '/sessions')).find((s) => s.image.includes(':project-'))
    built = session?.image ?? ''
    await row(page, session?.name ?? '')
      .getByText('Running')
      .waitFor()
    expect(session?.folders?.map((f) => f.name)).toContain('paper')
    expect(readFileSync(join(home, 'paper', '.git', 'config'), 'utf8')).not.toContain(server.password)

    writeFileSync(join(home, 'paper', 'demo', 'Dockerfile'), `FROM ${minimalImage}\nRUN echo again > /made\n`)
    await page.goto(`${program.url}/sessions/${session?.id ?? ''}`)
    await page.getByText('The project paper/demo has changed since the image of this session was built.').waitFor()
    await picture(page, 'project-session')
  })

  it('of a link fills in its address, and is cloned only after a click', async () => {
    const link = `slipway://project?address=${encodeURIComponent('https://example.invalid/x.git')}`
    const page = await browser.page(program, `/link?url=${encodeURIComponent(link)}`)
    await page.getByText('https://example.invalid/x.git').waitFor()
    await picture(page, 'project-asks')
    await page.getByRole('button', { name: 'Continue' }).click()
    await opening(page).getByLabel('Address').and(page.locator('[value="https://example.invalid/x.git"]')).waitFor()
    await picture(page, 'project-link')
    const operations = await program.call<Operation[]>('GET', '/operations')
    expect(operations.filter((one) => one.kind === 'project-clone')).toHaveLength(1)
    await opening(page).getByText('Directory', { exact: true }).click()
    await opening(page).getByRole('textbox', { name: 'Directory' }).fill('/nowhere/at-all')
    await opening(page).getByRole('button', { name: 'Open', exact: true }).click()
    await opening(page).getByRole('alert').waitFor()
    await picture(page, 'project-directory')
    await opening(page).getByText('Folder', { exact: true }).click()
    await opening(page).getByRole('combobox').click()
    await page.getByTitle('paper (local)').click()
    await opening(page).getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByRole('dialog', { name: 'Project paper' }).waitFor()
  })

  it('is remembered, and says that it has changed since its image was built', async () => {
    const page = await browser.page(program, '/folders')
    await page.getByRole('button', { name: 'Open a project…' }).click()
    const recent = opening(page).getByRole('region', { name: 'Recent projects' })
    await recent.getByRole('button', { name: 'Pin paper/demo' }).click()
    await recent.getByRole('button', { name: 'Unpin paper/demo' }).waitFor()
    await picture(page, 'project-recent')
    await recent.getByRole('button', { name: 'paper/demo', exact: true }).click()
    const project = page.getByRole('dialog', { name: 'Project paper' })
    await project.getByText('The project has changed since its image was built.').waitFor()
    await picture(page, 'project-changed')
    await project.getByRole('button', { name: 'Rebuild' }).waitFor()
  })
})
