import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { counted, counting } from './notebookPage'
import { eventually, labImage, Program } from './program'

// JupyterLab 4, as Debian 13 has it, on real Docker.
const program = new Program('docker')
const browser = new Browser()

stage(program, browser, { afresh: true })

/** What a cell has printed by now; empty before it prints. */
const printed = async (sheet: Page, cell: number) =>
  (await sheet.locator('.jp-CodeCell').nth(cell).locator('.jp-OutputArea-output pre').allInnerTexts()).join('').trim()

/** Waits until the page's kernel waits for it: a cell that is run before that is forgotten. */
const ready = (page: Page) => page.getByText('Python 3 (ipykernel) | Idle').waitFor()

/** Waits until no kernel of the server works. */
const idle = (page: Page, address: string) =>
  eventually('the kernels are idle', async () => {
    const answer = await page.goto(`${address}/api/kernels`)
    if (!answer?.ok()) return false
    const kernels = (await answer.json()) as { execution_state: string }[]
    return kernels.length > 0 && kernels.every((kernel) => kernel.execution_state === 'idle')
  })

describe('JupyterLab 4', () => {
  it('shows what cells printed while their page was closed or reloaded, and the control plane killed', async () => {
    const session = await program.running({
      name: 'kept-lab',
      image: labImage,
      resources: { cpu: 1, memory: 900 * 1024 ** 2 },
    })
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tile = page.locator('[data-app="jupyterlab"]')
    const [lab] = await Promise.all([
      browser.context.waitForEvent('page'),
      tile.getByRole('button', { name: /^JupyterLab/ }).click(),
    ])
    await lab.locator('.jp-Launcher').waitFor()
    await picture(lab, 'jupyterlab')
    await lab.locator('.jp-LauncherCard[data-category="Notebook"]').first().click()
    await ready(lab)
    await lab.locator('.jp-CodeCell .cm-content').first().click()
    await lab.keyboard.insertText(counting)
    await lab.keyboard.press('Shift+Enter')
    await lab.locator('.jp-CodeCell').nth(1).locator('.cm-content').click()
    await eventually('the cell prints', async () => (await printed(lab, 0)) !== '')
    await lab.keyboard.insertText('print("then")\n1 / 0')
    await lab.keyboard.press('Shift+Enter')
    await lab.keyboard.press('Control+s')
    await Promise.all([
      lab.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.url().includes('/api/contents/')),
      lab.locator('.jp-Dialog .jp-mod-accept').click(), // it asks for a name once
    ])
    const address = new URL(lab.url()).origin
    await lab.close()
    await program.kill()
    await program.start()

    const again = await browser.context.newPage()
    await idle(again, address)
    await again.goto(`${address}/lab/tree/Untitled.ipynb`)
    await again.locator('.jp-CodeCell').nth(1).getByText('ZeroDivisionError').first().waitFor()
    await picture(again, 'jupyterlab-kept')
    expect(await printed(again, 0)).toBe(counted)
    expect(await printed(again, 1)).toMatch(/^then/)

    // A page that stays open meanwhile shows it after a reload.
    await ready(again)
    await again.locator('.jp-CodeCell .cm-content').first().click()
    await again.keyboard.press('Control+Enter')
    const prompt = again.locator('.jp-CodeCell').first().locator('.jp-InputPrompt')
    await eventually('the cell runs', async () => !(await prompt.innerText()).includes('[1]'))
    await program.kill()
    await program.start()
    const look = await browser.context.newPage()
    await idle(look, address)
    await again.reload()
    await eventually('all is there', async () => (await printed(again, 0)) === counted)
  })
})
