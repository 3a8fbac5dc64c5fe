import type { Locator, Page } from 'playwright-core'

/**
 * Presses Escape once the focus is inside what it is to close, as it is for a person by the time they have read it. The
 * pointer leaves before: a tip that is open takes the key for itself.
 */
export async function escape(page: Page, inside = '[role="dialog"], .ant-drawer'): Promise<void> {
  await page.mouse.move(0, 0)
  await page.waitForFunction((selector) => Boolean(document.activeElement?.closest(selector)), inside)
  await page.locator('.ant-tooltip:visible').first().waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
}

/**
 * Presses Tab until something has the focus, as somebody without a pointer gets there, and sees that the focus can be
 * seen.
 */
export async function tabTo(page: Page, wanted: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  await wanted.waitFor({ state: 'attached' })
  for (let presses = 0; presses < 150; presses++) {
    if (await wanted.evaluate((element) => element.contains(document.activeElement))) {
      await page.waitForFunction(visibleFocus)
      return
    }
    await page.keyboard.press(key)
  }
  throw new Error(`${wanted.toString()} is not reached by ${key}`)
}

/**
 * Whether what has the focus, or what stands around it, shows so by an outline, a shadow or a border of its own
 * colour.
 */
function visibleFocus(): boolean {
  let element: Element | null = document.activeElement
  for (let steps = 0; element && steps < 4; steps++, element = element.parentElement) {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    if (outlineStyle !== 'none' && outlineWidth !== '0px') return true
    if (boxShadow !== 'none') return true
  }
  return false
}
