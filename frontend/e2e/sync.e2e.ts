import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { DemoProgram } from './program'

// Two folders become the same, both ways.
const program = new DemoProgram('workstation')
const browser = new Browser()
const dir = mkdtempSync(join(tmpdir(), 'slipway-sync-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** Puts files into a folder. */
async function put(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const file = join(dir, folder, name)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
    await program.cli('cp', '-f', file, `folder:${folder}/${name}`)
  }
}
const content = (folder: string, name: string) => {
  const file = join(dir, 'read')
  return program.cli('cp', '-f', `folder:${folder}/${name}`, file)
}

stage(program, browser, {
  prepare: async () => {
    for (const name of ['paper', 'paper-lab']) await program.call('POST', '/folders', { name })
    await put('paper', { '.gitignore': '*.log\n', 'run.log': 'noise', 'a.txt': 'one', 'both.txt': 'same' })
    await program.cli('folder', 'sync', 'paper', 'paper-lab')
  },
})

async function opened(page: Page) {
  await page.getByRole('button', { name: 'Sync with…: paper', exact: true }).click()
  return page.getByRole('dialog', { name: /^Sync paper on/ })
}

describe('two folders', () => {
  it('are synced: what changed goes across, and what changed in both is asked about', async () => {
    await expect(content('paper-lab', 'run.log')).rejects.toThrow(/file_use_not-found|no file/i)
    await put('paper', { 'new.txt': 'new', 'both.txt': 'here' })
    await put('paper-lab', { 'a.txt': 'two', 'both.txt': 'there' })
    const page = await browser.page(program, '/folders')
    const dialog = await opened(page)
    await dialog.getByRole('combobox').click()
    await page.getByTitle(/^paper-lab @/).click()
    await picture(page, 'sync')
    await dialog.getByRole('button', { name: 'Sync', exact: true }).click()
    await page.locator('[data-prompt="keep"]').waitFor()
    await picture(page, 'sync-conflict')
    await page.locator('[data-prompt="keep"]').getByRole('button').last().click()
    await dialog.locator('[data-step="back"][data-state="ok"]').waitFor()
    await picture(page, 'sync-done')
    for (const folder of ['paper', 'paper-lab'])
      for (const name of ['new.txt', 'a.txt', 'both.txt']) await content(folder, name)
  })
})
