import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { GitServer } from './gitServer'
import { stage } from './hooks'
import { DemoProgram } from './program'

// Sessions of this computer are simulated, so the git of another machine clones.
const dir = mkdtempSync(join(tmpdir(), 'slipway-clone-'))
const program = new DemoProgram('lab')
const browser = new Browser()
const server = new GitServer()

beforeAll(async () => {
  mkdirSync(join(dir, 'work'))
  writeFileSync(join(dir, 'work', 'requirements.txt'), 'numpy\n')
  await server.start(dir)
})
afterAll(() => {
  server.stop()
  rmSync(dir, { recursive: true, force: true })
})
stage(program, browser)

describe('a repository', () => {
  it('is cloned by the git of another machine, whose questions say where the answers go', async () => {
    const page = await browser.page(program, '/folders')
    await page.getByRole('button', { name: 'Open a project…' }).click()
    const opening = page.getByRole('dialog', { name: 'Open a project' })
    await opening.getByText('Git repository', { exact: true }).click()
    await opening.getByLabel('Address').fill(server.address)
    await opening.getByText('your answers go there').waitFor()
    await picture(page, 'project-there')
    await opening.getByRole('button', { name: 'Clone' }).click()
    for (const [kind, label, text] of [
      ['username', 'Username', 'ada'],
      ['password', 'Password', server.password],
    ] as const) {
      const prompt = page.locator(`[data-prompt="${kind}"]`)
      await prompt.getByText('Your answer goes to lab, whose git asks').waitFor()
      await picture(page, `project-there-${kind}`)
      await prompt.getByLabel(label).fill(text)
      await prompt.getByRole('button', { name: 'Continue' }).click()
    }
    await page.getByRole('dialog', { name: 'Project paper' }).getByText('requirements.txt').first().waitFor()
    const folders = await program.call<Folder[]>('GET', '/folders')
    expect(folders.filter((f) => f.name === 'paper').map((f) => f.agent)).toEqual(['lab'])
  })
})
