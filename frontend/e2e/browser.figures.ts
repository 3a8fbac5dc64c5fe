import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { Browser } from './browser'
import { entry, openedFolder } from './foldersPage'
import { quantile, scrollThrough, tell } from './figures'
import { stage } from './hooks'
import { eventually, Program } from './program'

// What `make bench` measures in the browser, each beside the least program that could do it: build/bench/browser.go
// serves that one, and makes the file. A figure is a line "NUMBER UNIT"; that program makes a table of them.
const told = (name: string) => {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: run make bench`)
  return value
}
const plain = told('SLIPWAY_PLAIN') // its address
const dir = told('SLIPWAY_PLAIN_DIR') // which it serves
const rounds = Number(told('SLIPWAY_ROUNDS'))
const name = 'large.bin'
const source = join(dir, name)
const size = statSync(source).size
const cut = 1500 // milliseconds without a network

const program = new Program('sim')
const browser = new Browser()
const disk = mkdtempSync(join(dir, 'browser-'))
afterAll(() => rmSync(disk, { recursive: true, force: true }))
stage(program, browser)

async function timed(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}

async function sum(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

const whole = (path: string) =>
  eventually(`${path} is whole`, () => Promise.resolve(existsSync(path) && statSync(path).size === size), 300_000)

/** Fetches by what a click begins, and returns how long it took. What came is what was copied. */
async function fetched(page: Page, begin: () => Promise<void>, want: string): Promise<number> {
  let path = ''
  const took = await timed(async () => {
    const [download] = await Promise.all([page.waitForEvent('download'), begin()])
    path = await download.path()
  })
  expect(await sum(path)).toBe(want)
  rmSync(path)
  return took
}

/**
 * The page of the other program, which has done nothing yet: a browser asks before a page fetches a second file by
 * itself.
 */
async function plainPage(): Promise<Page> {
  const page = await browser.context.newPage()
  await page.goto(plain)
  return page
}

/** Sends the file by the page's own field, and returns how long it took. */
async function sent(list: Locator, to: string): Promise<number> {
  rmSync(to, { force: true })
  return timed(async () => {
    await list.page().locator('input[type=file]').first().setInputFiles(source)
    await whole(to)
  })
}

/** Runs in a page: "shown" becomes how many milliseconds after the next click a text was painted. */
function stopwatch(text: string): void {
  const shown = new Promise<number>((done) => {
    document.addEventListener(
      'click',
      (click) => {
        const seen = new MutationObserver(() => {
          if (!document.body.textContent.includes(text)) return
          seen.disconnect()
          requestAnimationFrame(() => setTimeout(() => done(performance.now() - click.timeStamp)))
        })
        seen.observe(document.body, { subtree: true, childList: true, characterData: true })
      },
      { capture: true, once: true },
    )
  })
  Object.assign(window, { shown })
}

/** How many bytes there are of what is being sent to a folder. */
function arrived(folder: string): number {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.part'))
    .reduce((bytes, file) => bytes + statSync(join(folder, file)).size, 0)
}

/** The most memory the program has had since it was last asked, in MB. */
function peak(): number {
  const status = readFileSync(`/proc/${program.pid}/status`, 'utf8')
  writeFileSync(`/proc/${program.pid}/clear_refs`, '5')
  return (Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024) / 1e6
}

describe('a large file', () => {
  it('goes both ways', async () => {
    const want = await sum(source)
    const { page, list, dir: folder } = await openedFolder(browser, program, 'both', {})
    const [there, back] = [join(folder, name), join(disk, 'back.bin')]
    const took: Record<'cp' | 'up' | 'plain-up' | 'down' | 'plain-down', number[]> = {
      cp: [],
      up: [],
      'plain-up': [],
      down: [],
      'plain-down': [],
    }
    peak()
    tell(peak(), 'before-MB')
    for (let round = 0; round < rounds; round++) {
      took.cp.push(
        await timed(() => Promise.resolve(execFileSync('sh', ['-c', 'cp "$0" "$1" && sync "$1"', source, back]))),
      )
      rmSync(back)
      const other = await plainPage()
      took['plain-up'].push(
        await timed(async () => {
          await other.locator('input').setInputFiles(source)
          expect(await other.evaluate('send()')).toBe(200)
        }),
      )
      took.up.push(await sent(list, there))
      expect(await sum(there)).toBe(want)
      await entry(list, name).waitFor()
      took['plain-down'].push(await fetched(other, () => other.getByRole('link').click(), want))
      await other.close()
      took.down.push(await fetched(page, () => list.getByRole('button', { name: `Download ${name}` }).click(), want))
      rmSync(there)
      await list.getByRole('button', { name: 'Refresh' }).click()
      await entry(list, name).waitFor({ state: 'detached' })
    }
    tell(peak(), 'peak-MB')
    for (const [way, times] of Object.entries(took)) tell(quantile(times, 0.5), `${way}-ms`)
  })

  it('goes on after a cut', async () => {
    const { page, list, dir: folder } = await openedFolder(browser, program, 'cut', {})
    const there = join(folder, name)
    const took = await timed(async () => {
      await list.page().locator('input[type=file]').first().setInputFiles(source)
      await eventually('a part has arrived', () => Promise.resolve(arrived(folder) > size / 4))
      await page.context().setOffline(true)
      await page.waitForTimeout(cut)
      await page.context().setOffline(false)
      await whole(there)
    })
    expect(await sum(there)).toBe(await sum(source))
    tell(took, 'cut-ms')
  })
})

describe('a folder with 10,000 files', () => {
  it('is listed and scrolled', async () => {
    const names = Array.from({ length: rounds }, (_, i) => `images-${i}`)
    const { page, list, dir: folder } = await openedFolder(browser, program, 'many', {})
    for (const each of names) {
      mkdirSync(join(folder, each))
      for (let i = 0; i < 10_000; i++) writeFileSync(join(folder, each, `image-${String(i).padStart(5, '0')}.png`), '')
    }
    await list.getByRole('button', { name: 'Refresh' }).click()
    const listed: number[] = []
    for (const each of names) {
      await entry(list, each).waitFor()
      await page.evaluate(stopwatch, '10000 items')
      await entry(list, each).click()
      listed.push(await page.evaluate<number>('shown'))
      if (each !== names.at(-1)) await list.getByRole('navigation', { name: 'Path' }).getByText('many').click()
    }
    tell(quantile(listed, 0.5), 'listed-ms')
    await scrollThrough(list.locator('.ant-table-tbody-virtual-holder'), entry(list, 'image-09999.png'))
  })
})
