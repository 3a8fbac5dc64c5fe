import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import type { Folder } from '@/api/types.gen'
import type { Browser } from './browser'
import type { Program } from './program'

export const makeFolder = (program: Program, name: string, path?: string) =>
  program.call<Folder>('POST', '/folders', { name, ...(path ? { path } : {}) })

/** A folder that is a directory of the simulated machine, with files in it, open in the explorer. */
export async function openedFolder(
  browser: Browser,
  program: Program,
  name: string,
  files: Record<string, string | Buffer>,
): Promise<{ page: Page; folder: Folder; dir: string; list: Locator }> {
  const dir = join(program.disk, 'scratch', name)
  mkdirSync(dir)
  for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, file), content)
  const folder = await makeFolder(program, name, `/scratch/${name}`)
  const page = await browser.page(program, `/folders/${folder.id}`)
  const drawer = page.getByRole('dialog', { name })
  await drawer.getByRole('navigation', { name: 'Path' }).waitFor()
  return { page, folder, dir, list: drawer }
}

export const entry = (list: Locator, name: string) => list.getByRole('button', { name, exact: true })
export const local = (name: string, content: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(content) })
