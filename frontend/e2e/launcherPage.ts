import type { Locator, Page } from 'playwright-core'

/** What is entered in the launcher, by hand. */
export interface Wish {
  name?: string
  image: string
  type?: 'Interactive' | 'Batch'
  command?: string
  cpu?: number
  /** MiB. */
  memory?: number
  env?: Record<string, string>
  mount?: { source: string; target: string; readOnly: boolean }
  ports?: string
}

export const step = (page: Page, name: string): Locator => page.locator(`button[data-step="${name}"]`)

/** Presses Next and waits for the step, because a press that comes before it is one on the Next of the step before. */
async function next(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Next' }).click()
  await page.locator(`button[data-step="${name}"][aria-current="step"]`).waitFor()
}

/** Goes through the five steps and enters a wish; ends at Confirm & launch. */
export async function enter(page: Page, wish: Wish): Promise<void> {
  await page.getByRole('heading', { name: 'Launch a session' }).waitFor()
  if (wish.type === 'Batch') await page.getByText('Runs one command, then ends.').click()
  if (wish.name !== undefined) await page.getByRole('textbox', { name: 'Name', exact: true }).fill(wish.name)
  if (wish.command !== undefined) await page.getByLabel('Startup command').fill(wish.command)

  await next(page, 'environment')
  await page.getByText('Enter manually', { exact: true }).click()
  await page.getByRole('combobox', { name: 'Image' }).fill(wish.image)
  await page.keyboard.press('Tab')
  if (wish.cpu !== undefined) await page.getByRole('spinbutton', { name: 'CPU' }).fill(String(wish.cpu))
  if (wish.memory !== undefined) await enterMemory(page, wish.memory)
  for (const [index, [name, value]] of Object.entries(wish.env ?? {}).entries()) {
    await page.getByRole('button', { name: 'Add a variable' }).click()
    await page.getByLabel(`Variable ${index + 1}: name`).fill(name)
    await page.getByLabel(`Variable ${index + 1}: value`).fill(value)
  }

  await next(page, 'storage')
  if (wish.mount) {
    await page.getByRole('button', { name: 'Enter a path' }).click()
    await page.getByLabel('Directory 1: path on the machine').fill(wish.mount.source)
    await page.getByLabel('Directory 1: path in the session').fill(wish.mount.target)
    if (wish.mount.readOnly) await page.getByRole('checkbox', { name: 'Directory 1: read-only' }).check()
  }

  await next(page, 'network')
  if (wish.ports) {
    await page.getByLabel('Preopened ports').fill(wish.ports)
    await page.keyboard.press('Enter')
  }
  await page.getByRole('button', { name: 'Review' }).click()
  await page.getByRole('heading', { name: 'Command line' }).waitFor()
}

export async function enterMemory(page: Page, mib: number): Promise<void> {
  await page.getByRole('combobox', { name: 'Memory: unit' }).click()
  await page.locator('.ant-select-dropdown:visible').getByText('MiB', { exact: true }).click()
  await page.getByRole('spinbutton', { name: 'Memory' }).fill(String(mib))
}

/** Presses Launch, answers the question that comes without a mount, and waits for the list of sessions. */
export async function launch(page: Page, mounted = false): Promise<void> {
  await page.getByRole('button', { name: 'Launch', exact: true }).click()
  if (!mounted) {
    const question = page.getByRole('dialog', { name: 'Launch without a folder?' })
    await question.getByText('deleted with the session').waitFor()
    await question.getByRole('button', { name: 'Launch' }).click()
  }
  await page.waitForURL('**/sessions')
}

/** The row of a session in the list. The reasons of other rows may name it too. */
export const row = (page: Page, name: string | RegExp): Locator =>
  page
    .locator('[data-row-key]')
    .filter({ has: page.getByRole('link', { name, exact: true }) })
    .first()

/** Chooses what to ask of devices. */
export const askFor = (page: Page, mode: 'None' | 'Share' | 'Whole GPUs' | 'MIG' | 'VRAM'): Promise<void> =>
  page.getByRole('radiogroup', { name: 'Type of accelerator' }).getByText(mode, { exact: true }).click()

/** Opens a select by its name and chooses an entry of it. */
export async function choose(page: Page, select: string, entry: string): Promise<void> {
  await page.getByRole('combobox', { name: select }).click()
  await page.locator('.ant-select-dropdown:visible').getByText(entry, { exact: true }).click()
}
