import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { Browser } from './browser'
import { shoot } from './browser'
import type { Program } from './program'

/** Pictures of what a test that failed left. A page that cannot be taken hides neither the others nor the failure. */
async function pictures(pages: Page[], test: string): Promise<void> {
  for (const [index, page] of pages.entries()) {
    if (page.url() === 'about:blank') continue
    await shoot(page, `failed-${test.replace(/\W+/g, '-').slice(0, 60)}-${index}`, 20_000).catch((error: unknown) =>
      process.stderr.write(`no picture of ${page.url()}: ${String(error)}\n`),
    )
  }
}

declare module 'vitest' {
  interface TaskMeta {
    /** Where the pages of a test that failed were. */
    pages?: string[]
  }
}

/** Where a page is: its address, how many steps led there, and what has the focus. */
async function place(page: Page): Promise<string> {
  const inside = page.evaluate(
    () => `${history.length} steps, focus on ${document.activeElement?.outerHTML.slice(0, 120)}`,
  )
  const late = new Promise<string>((answer) => setTimeout(answer, 5_000, 'it does not answer'))
  return `${page.url()} (${await Promise.race([inside, late]).catch(String)})`
}

/**
 * After each test: pictures of every page if it failed, then the promises that
 * hold for all of them: no request left the machine, no page broke.
 */
export function watchOver(browser: () => Browser): void {
  afterEach(async ({ task }) => {
    const { context, foreign, errors } = browser()
    if (task.result?.state === 'fail') {
      task.meta.pages = await Promise.all(context.pages().map(place))
      await pictures(context.pages(), task.name)
    }
    await browser().clear()
    expect(foreign.splice(0)).toEqual([])
    expect(errors.splice(0)).toEqual([])
  })
}

interface StageOptions {
  /** What the tests find: sessions that run, folders. The program runs, the browser is there. */
  prepare?: () => Promise<unknown>
  /**
   * Whether sessions live for one test, those of a story not even for the first; they end after the last one in any
   * case.
   */
  afresh?: boolean
}

/** The program and the browser of a file of tests: started before the first, watched over, closed after the last. */
export function stage(program: Program, browser: Browser, { prepare, afresh = false }: StageOptions = {}): void {
  beforeAll(async () => {
    await browser.start()
    await program.start()
    if (afresh) await program.endAll()
    await prepare?.()
  })
  afterAll(async () => {
    await browser.close()
    await program.close()
  })
  // Hooks run from the last to the first: pictures of what failed come before the end of its sessions.
  if (afresh) afterEach(() => program.endAll())
  watchOver(() => browser)
}
