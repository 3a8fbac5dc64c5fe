import { describe, expect, it } from 'vitest'
import type { Locator, Page } from 'playwright-core'
import type { Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { eventually, notebookImage, Program } from './program'
import { enter, launch, row } from './launcherPage'
import { counted, counting, execute, newNotebook, openNotebooks, printed } from './notebookPage'
import { ShellPage, Wire } from './shellPage'

const program = new Program('docker')
const browser = new Browser()

stage(program, browser, { afresh: true })

const CPUS = 1
const MEMORY = 700 * 1024 ** 2
const SHM = 64 * 1024 ** 2

/** Reads the limits of its own control group, of either version, as the Python documentation's examples read files. */
const notebook = `
import os
from pathlib import Path

def read(*names):
    for name in names:
        path = Path('/sys/fs/cgroup') / name
        if path.exists():
            return path.read_text().split()
    raise FileNotFoundError(names)

cpu = read('cpu.max', 'cpu/cpu.cfs_quota_us', 'cpu,cpuacct/cpu.cfs_quota_us')
period = cpu[1:] or read('cpu/cpu.cfs_period_us', 'cpu,cpuacct/cpu.cfs_period_us')
memory = read('memory.max', 'memory/memory.limit_in_bytes')
shm = os.statvfs('/dev/shm')
room = shm.f_blocks * shm.f_frsize
line = f"cpus={int(cpu[0]) / int(period[0]):g} seen={len(os.sched_getaffinity(0))} memory={memory[0]} shm={room}"
Path('from-notebook.txt').write_text(line)
print(line)
`

/** Waits until no kernel of the server works. */
async function idle(tree: Page): Promise<void> {
  await eventually('the kernels are idle', () =>
    tree
      .evaluate(async () => {
        const kernels = (await (await fetch('/api/kernels')).json()) as { execution_state: string }[]
        return kernels.length > 0 && kernels.every((kernel) => kernel.execution_state === 'idle')
      })
      .catch(() => false),
  )
}

/** What leaves some of each kind of output, and the end of an error. */
const rich = [
  'from IPython.display import HTML, clear_output, display',
  'print("gone"); clear_output(wait=True)',
  'print("50 %", end="\\r"); print("100 %"); display(HTML("<b>rich</b>")); print("then")',
  '1 / 0',
].join('\n')

/** Opens a notebook, begins its second cell, closes it, and has the cell print. */
async function startAway(address: string, what: string): Promise<void> {
  const sheet = await browser.context.newPage()
  await sheet.goto(address)
  await sheet.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
  await sheet.locator('.code_cell .CodeMirror').nth(1).click()
  await sheet.keyboard.press('Control+A')
  await sheet.keyboard.insertText(
    `import os\nwhile not os.path.exists("go"): time.sleep(0.1)\nos.remove("go"); print("for", "${what}")`,
  )
  await save(sheet)
  await sheet.keyboard.press('Control+Enter')
  await sheet.locator('#kernel_indicator_icon.kernel_busy_icon').waitFor()
  await sheet.close()
  await program.cli('exec', 'kept', '--', 'touch', 'go')
}

/** Saves the notebook. */
async function save(sheet: Page): Promise<void> {
  await Promise.all([
    sheet.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.ok()),
    sheet.keyboard.press('Control+s'),
  ])
}

/** Launches by the five steps and waits in the list until it runs. */
async function launched(page: Page, name: string): Promise<Session> {
  await enter(page, { name, image: notebookImage, cpu: CPUS, memory: MEMORY / 1024 ** 2 })
  await launch(page)
  await row(page, name).getByText('Running').waitFor()
  const found = (await program.sessions()).find((s) => s.name === name)
  if (!found) throw new Error(`${name} is not listed`)
  return found
}

describe('Jupyter', () => {
  it('opens by one click and executes a notebook that finds the limits it was given', async () => {
    const page = await browser.page(program, '/launcher')
    const session = await launched(page, 'notebook-of-limits')

    await row(page, session.name).getByRole('button', { name: 'Apps' }).click()
    const tile = page.locator('[data-app="notebook"]')
    await tile.waitFor()
    await picture(page, 'apps')
    const [tree] = await Promise.all([
      browser.context.waitForEvent('page'),
      tile.getByRole('button', { name: /^Jupyter Notebook/ }).click(),
    ])
    await tree.waitForURL(new RegExp(`^http://notebook-${session.id}\\.localhost:`))
    await tree.locator('#notebook_list').waitFor()
    expect(tree.url()).not.toContain('ticket')
    await picture(tree, 'jupyter-tree')

    const sheet = await newNotebook(browser.context, tree)
    await execute(sheet, notebook)
    await eventually('the cell prints', async () => (await printed(sheet)) !== '')
    await picture(sheet, 'jupyter-notebook')
    const limits = await printed(sheet)
    expect(limits).toBe(`cpus=${CPUS} seen=${CPUS} memory=${MEMORY} shm=${SHM}`)

    // The terminal of the session sees the file that the notebook wrote.
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('cat from-notebook.txt; echo')
    await shell.saw(limits)
    await shell.run('echo back > from-terminal.txt')

    // The tile says that it is ready, and its address is the same when it is opened again.
    await page.getByRole('button', { name: 'Apps' }).click()
    await tile.getByText('Ready').waitFor()
    const [again] = await Promise.all([
      browser.context.waitForEvent('page'),
      tile.getByRole('button', { name: /^Jupyter Notebook/ }).click(),
    ])
    await again.locator('#notebook_list').getByText('from-terminal.txt').waitFor()
    expect(new URL(again.url()).host).toBe(new URL(tree.url()).host)
  })

  it('runs a cell two clicks after a fresh start', async () => {
    const page = await browser.page(program)
    let clicks = 0
    const click = (target: Locator) => {
      clicks++
      return target.click()
    }
    const offer = page.locator('[data-offer="new"]')
    await offer.getByText('Jupyter Notebook here').waitFor()
    await offer.getByText('Starts at once').waitFor()
    await picture(page, 'quick-start')
    const [sheet] = await Promise.all([
      browser.context.waitForEvent('page'),
      click(offer.getByRole('button', { name: /^Jupyter Notebook here/ })),
    ])
    await sheet.waitForURL(/^http:\/\/notebook-\w+\.localhost:\d+\/notebooks\/Untitled\.ipynb$/)
    await sheet.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
    await click(sheet.locator('.code_cell .CodeMirror').first())
    await sheet.keyboard.insertText('print(6 * 7)')
    await sheet.keyboard.press('Shift+Enter')
    await eventually('the cell prints', async () => (await printed(sheet)) === '42')
    expect(clicks).toBe(2)
    const [session] = await program.sessions()
    await row(page, session?.name ?? '')
      .getByText('Running')
      .waitFor()
  })

  it('lets nobody in without a ticket', async () => {
    const session = await program.running({
      name: 'ticketless',
      image: notebookImage,
      resources: { cpu: 1, memory: MEMORY },
    })
    await program.call('POST', `/sessions/${session.id}/apps/notebook/open`, {})
    const stranger = await Browser.open()
    try {
      const page = await stranger.context.newPage()
      const answer = await page.goto(`http://notebook-${session.id}.localhost:${new URL(program.url).port}/tree`)
      expect(answer?.status()).toBeGreaterThanOrEqual(401)
      expect(await page.locator('#notebook_list').count()).toBe(0)
    } finally {
      await stranger.close()
    }
  })

  it('goes on in its page when the control plane is killed and started again', async () => {
    const session = await program.running({
      name: 'survivor',
      image: notebookImage,
      resources: { cpu: 1, memory: MEMORY },
    })
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tree = await openNotebooks(browser.context, page)
    await program.kill()
    await program.start()
    await eventually('the notebook page answers again', async () => {
      const answer = await tree.reload().catch(() => null)
      return (answer?.ok() ?? false) && (await tree.locator('#notebook_list').count()) === 1
    })
    const id = (await program.sessions()).find((s) => s.name === 'survivor')?.id
    expect(id).toBe(session.id)
  })

  it('shows what cells printed while their page was closed or reloaded, and the control plane killed', async () => {
    const session = await program.running({
      name: 'kept',
      image: notebookImage,
      resources: { cpu: 1, memory: MEMORY },
    })
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tree = await openNotebooks(browser.context, page)
    const sheet = await newNotebook(browser.context, tree)
    await execute(sheet, counting)
    const address = sheet.url()
    await sheet.keyboard.insertText(rich)
    await sheet.keyboard.press('Shift+Enter')
    await save(sheet)
    await sheet.close()
    await program.kill()
    await program.start()
    await idle(tree)

    const again = await browser.context.newPage()
    await again.goto(address)
    await again.locator('.code_cell').nth(1).locator('.output_error').waitFor()
    expect(await printed(again)).toBe(counted)
    expect(await printed(again, 1)).toMatch(/^100 %\s*then$/)
    expect(await again.locator('.code_cell').nth(1).locator('.output_html b').innerText()).toBe('rich')
    expect(await again.locator('.code_cell').nth(1).locator('.input_prompt').innerText()).toContain('2')
    await picture(again, 'jupyter-kept')

    await again.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
    await again.locator('.code_cell .CodeMirror').first().click()
    await again.keyboard.press('Control+Enter')
    await eventually('the cell prints', async () => (await printed(again)).startsWith('0\n1'))
    await again.reload()
    await idle(tree)
    await again.reload()
    await again.locator('.code_cell').first().locator('.output_stdout').waitFor()
    expect(await printed(again)).toBe(counted)
    const files = await tree.evaluate(async () => {
      const answer = await fetch('/api/contents/')
      const listed = (await answer.json()) as { content: { name: string }[] }
      return listed.content.map((file) => file.name)
    })
    expect(files).toEqual(['Untitled.ipynb'])

    await again.close()
    await startAway(address, 'the image')
    await idle(tree)
    const notebook = () => program.cli('exec', 'kept', '--', 'cat', 'Untitled.ipynb')
    expect(await notebook()).not.toContain('for the image')
    await program.cli('commit', 'kept', 'with-notebooks')
    expect(await notebook()).toContain('for the image')
    const image = (await program.cli('image', 'ls', '-o', 'name'))
      .split('\n')
      .find((ref) => ref.includes('with-notebooks'))
    await program.cli('image', 'rm', '--yes', image ?? '')

    await startAway(address, 'the end')
    await idle(tree)
    expect(await notebook()).not.toContain('for the end')
    await program.cli('stop', '--keep', 'kept')
    await program.status(session.id, 'TERMINATED')
    await program.cli('continue', 'kept')
    await eventually('it runs again', async () => (await program.sessions()).some((s) => s.status === 'RUNNING'))
    expect(await notebook()).toContain('for the end')
  })
})
