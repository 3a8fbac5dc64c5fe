import type { BrowserContext, Page } from 'playwright-core'

const LINES = 40
/** A cell that prints for four seconds, and all that it prints. */
export const counting = `import time\nfor i in range(${LINES}):\n    print(i, flush=True); time.sleep(0.1)`
export const counted = Array.from({ length: LINES }, (_, i) => i).join('\n')

/** Opens Jupyter Notebook from the apps of a session: the page that lists the session's files. */
export async function openNotebooks(context: BrowserContext, page: Page): Promise<Page> {
  const [tree] = await Promise.all([
    context.waitForEvent('page'),
    page
      .locator('[data-app="notebook"]')
      .getByRole('button', { name: /^Jupyter Notebook/ })
      .click(),
  ])
  await tree.locator('#notebook_list').waitFor()
  return tree
}

/** Opens a new notebook from the page that lists a session's files. */
export async function newNotebook(context: BrowserContext, tree: Page): Promise<Page> {
  await tree.locator('#new-dropdown-button').click()
  const [sheet] = await Promise.all([
    context.waitForEvent('page'),
    tree
      .locator('#new-menu')
      .getByText(/^Python 3/)
      .click(),
  ])
  return sheet
}

/** Writes code into the notebook's first cell and runs it. */
export async function execute(sheet: Page, code: string): Promise<void> {
  await sheet.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
  await sheet.locator('.code_cell .CodeMirror').first().click()
  await sheet.keyboard.insertText(code)
  await sheet.keyboard.press('Shift+Enter')
}

/** What a cell, the first one unless another is named, has printed by now; empty before it prints. */
export async function printed(sheet: Page, cell = 0): Promise<string> {
  return (await sheet.locator('.code_cell').nth(cell).locator('.output_stdout pre').allInnerTexts()).join('').trim()
}
