import type { Page, Request } from 'playwright-core'
import type { Session } from '@/api/types.gen'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { counted, counting } from './notebookPage'
import { eventually, labImage, notebook7Image, Program } from './program'

// JupyterLab 4, as Debian 13 has it, and Jupyter Notebook 7, as Debian 14 has it, on real Docker.
const program = new Program('docker')
const browser = new Browser()

stage(program, browser, { afresh: true })

/** A kernel as the server describes it. */
interface Kernel {
  execution_state: string
  connections: number
}

/** How a program shows its pages. */
interface Look {
  title: string
  image: string
  app: { id: string; title: string }
  /** Makes a new notebook from the page that it opens with, and returns the page of the notebook. */
  create: (page: Page) => Promise<Page>
  /** Where it shows a notebook. */
  folder: string
  /** What it shows while the kernel waits. */
  idle: (page: Page) => Promise<void>
}

/** Whether a page of Notebook 7 gives the session of its kernel the name of the notebook, as its last step. */
const namesSession = (request: Request) =>
  request.method() === 'PATCH' && request.url().includes('/api/sessions/') && !!request.postData()?.includes('"name"')

const looks: Look[] = [
  {
    title: 'JupyterLab 4',
    image: labImage,
    app: { id: 'jupyterlab', title: 'JupyterLab' },
    create: async (page) => {
      await page.locator('.jp-Launcher').waitFor()
      await picture(page, 'jupyterlab')
      await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click()
      return page
    },
    folder: 'lab/tree',
    idle: (page) => page.getByText('Python 3 (ipykernel) | Idle').waitFor(),
  },
  {
    title: 'Jupyter Notebook 7',
    image: notebook7Image,
    app: { id: 'notebook', title: 'Jupyter Notebook' },
    create: async (page) => {
      await page.locator('.jp-DirListing').waitFor()
      await picture(page, 'notebook7')
      await page.getByRole('menuitem', { name: 'New' }).click()
      const [sheet] = await Promise.all([
        browser.context.waitForEvent('page'),
        // With this, the page has its kernel: the kernel has had a connection for a moment by then.
        browser.context.waitForEvent('response', (answer) => namesSession(answer.request())),
        page.getByRole('menuitem', { name: 'Python 3 (ipykernel)' }).click(),
      ])
      return sheet
    },
    folder: 'notebooks',
    idle: async (page) => {
      // What it shows is the same before it has a kernel.
      await eventually('its kernel is idle', () =>
        page.evaluate(async () => {
          const kernels = (await (await fetch('/api/kernels')).json()) as Kernel[]
          return kernels.some((kernel) => kernel.execution_state === 'idle' && kernel.connections > 0)
        }),
      )
      await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').waitFor()
    },
  },
]

/** What a cell has printed by now; empty before it prints. */
const printed = async (sheet: Page, cell: number) =>
  (await sheet.locator('.jp-CodeCell').nth(cell).locator('.jp-OutputArea-output pre').allInnerTexts()).join('').trim()

const prompt = (sheet: Page, cell: number) =>
  sheet.locator('.jp-CodeCell').nth(cell).locator('.jp-InputPrompt').innerText()

/** Writes code into a cell, runs it and adds another one. */
async function execute(sheet: Page, cell: number, code: string): Promise<void> {
  await sheet.locator('.jp-CodeCell').nth(cell).locator('.cm-content').click()
  await sheet.keyboard.insertText(code)
  await sheet.keyboard.press('Shift+Enter')
  await sheet
    .locator('.jp-CodeCell')
    .nth(cell + 1)
    .waitFor()
}

/** Saves the notebook; JupyterLab asks for a name once. */
async function save(sheet: Page, named = true): Promise<void> {
  await sheet.keyboard.press('Control+s')
  await Promise.all([
    sheet.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.url().includes('/api/contents/')),
    named ? undefined : sheet.locator('.jp-Dialog .jp-mod-accept').click(),
  ])
}

/** Waits until no kernel of the server works. */
const idle = (page: Page, address: string) =>
  eventually('the kernels are idle', async () => {
    const answer = await page.goto(`${address}/api/kernels`)
    if (!answer?.ok()) return false
    const kernels = (await answer.json()) as Kernel[]
    return kernels.length > 0 && kernels.every((kernel) => kernel.execution_state === 'idle')
  })

function story({ title, image, app, create, folder, idle: ready }: Look): void {
  /** Starts a session and opens a new notebook in it. */
  async function open(name: string): Promise<{ sheet: Page; session: Session }> {
    const session = await program.running({ name, image, resources: { cpu: 1, memory: 900 * 1024 ** 2 } })
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tile = page.locator(`[data-app="${app.id}"]`)
    const [opened] = await Promise.all([
      browser.context.waitForEvent('page'),
      tile.getByRole('button', { name: new RegExp(`^${app.title}`) }).click(),
    ])
    const sheet = await create(opened)
    await ready(sheet)
    return { sheet, session }
  }

  it('shows what cells printed while their page was closed or reloaded, and the control plane killed', async () => {
    const { sheet } = await open('kept')
    await execute(sheet, 0, counting)
    await eventually('the cell prints', async () => (await printed(sheet, 0)) !== '')
    await execute(sheet, 1, 'print("then")\n1 / 0')
    await save(sheet, folder === 'notebooks')
    const address = new URL(sheet.url()).origin
    await sheet.close()
    await program.kill()
    await program.start()

    const again = await browser.context.newPage()
    await idle(again, address)
    await again.goto(`${address}/${folder}/Untitled.ipynb`)
    await again.locator('.jp-CodeCell').nth(1).getByText('ZeroDivisionError').first().waitFor()
    await picture(again, `${app.id}-kept`)
    expect(await printed(again, 0)).toBe(counted)
    expect(await printed(again, 1)).toMatch(/^then/)

    // A page that stays open meanwhile shows it after a reload.
    await ready(again)
    await again.locator('.jp-CodeCell .cm-content').first().click()
    await again.keyboard.press('Control+Enter')
    await eventually('the cell runs', async () => !(await prompt(again, 0)).includes('[1]'))
    await program.kill()
    await program.start()
    const look = await browser.context.newPage()
    await idle(look, address)
    await again.reload()
    await eventually('all is there', async () => (await printed(again, 0)) === counted)
  })

  it('shows what cells go on to print in a page that was opened meanwhile', async () => {
    const { sheet, session } = await open('live')
    // On one line, however long it takes: what is far down the page is not in the document.
    await execute(
      sheet,
      0,
      'import os, time\ni = 0\nwhile not os.path.exists("stop"):\n' +
        '    print(i, end=" ", flush=True); time.sleep(0.2); i += 1',
    )
    await execute(
      sheet,
      1,
      'from IPython.display import clear_output, display\nbar = display("0 %", display_id=True)\n' +
        'print("gone"); clear_output(wait=True); print("stays"); bar = display("10 %", display_id=True)\n' +
        'for i in range(5):\n    time.sleep(0.3); bar.update(f"{i} of 5")\n"value"',
    )
    await execute(sheet, 2, 'bar.update("all"); print("last"); 1 / 0')
    await eventually('it prints', async () => (await printed(sheet, 0)) !== '')
    await save(sheet, folder === 'notebooks')
    const address = new URL(sheet.url()).origin
    await sheet.close()

    const again = await browser.context.newPage()
    await again.goto(`${address}/${folder}/Untitled.ipynb`)
    await eventually('the cell is shown as running', async () => (await prompt(again, 0)).includes('*'))
    const numbers = async () => (await printed(again, 0)).split(' ')
    const before = (await numbers()).length
    await eventually('more is printed', async () => (await numbers()).length > before + 3)
    expect(await prompt(again, 0)).toContain('*')
    await picture(again, `${app.id}-live`)
    await program.cli('exec', session.id, '--', 'touch', 'stop')
    const third = () => again.locator('.jp-CodeCell').nth(2).locator('.jp-OutputArea-output').allInnerTexts()
    await eventually('the last cell has run', async () => (await third()).join('').includes('ZeroDivision'))
    const shown = async () => {
      expect(await numbers()).toEqual(Array.from({ length: (await numbers()).length }, (_, i) => String(i)))
      expect(await printed(again, 1)).toMatch(/^stays\s*'all'\s*'value'$/)
      expect((await third()).join('')).toMatch(/^last\s[^]*ZeroDivisionError/)
      for (const cell of [0, 1, 2]) expect(await prompt(again, cell)).toContain(`[${cell + 1}]`)
    }
    await eventually('no cell runs', async () => !(await prompt(again, 2)).includes('*'))
    await shown()
    await picture(again, `${app.id}-live-done`)
    await save(again)
    const all = await numbers()
    await again.reload()
    await again.locator('.jp-CodeCell').nth(2).getByText('ZeroDivisionError').first().waitFor()
    await shown()
    expect(await numbers()).toEqual(all)
    expect(await again.locator('.jp-Dialog').count(), `${title} asks something`).toBe(0)
  })
}

for (const look of looks) describe(look.title, () => story(look))
