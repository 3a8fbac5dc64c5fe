import type { Page } from 'playwright-core'

/** Presses Escape once the focus is in a dialog, as it is for a person by the time they have read it. */
export async function escape(page: Page): Promise<void> {
  await page.waitForFunction(() => Boolean(document.activeElement?.closest('[role="dialog"]')))
  await page.keyboard.press('Escape')
}
