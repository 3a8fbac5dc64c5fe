import { afterEach, expect } from 'vitest'
import type { Browser } from './browser'
import { picture } from './browser'

/**
 * After each test: pictures of every page if it failed, then the promises that
 * hold for all of them: no request left the machine, no page broke.
 */
export function watchOver(browser: () => Browser): void {
  afterEach(async ({ task }) => {
    const { context, foreign, errors } = browser()
    const failed = task.result?.state === 'fail'
    for (const [index, page] of context.pages().entries()) {
      if (failed && page.url() !== 'about:blank') await picture(page, `failed-${task.name.replace(/\W+/g, '-').slice(0, 60)}-${index}`)
      if (index > 0) await page.close()
    }
    expect(foreign.splice(0)).toEqual([])
    expect(errors.splice(0)).toEqual([])
  })
}
