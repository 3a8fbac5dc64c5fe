import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Session, Settings } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { eventually, minimalImage, Program } from './program'
import { ShellPage, Wire } from './shellPage'

const program = new Program('docker')
const browser = new Browser()
let session: Session

stage(program, browser, {
  prepare: async () => {
    session = await program.running({ name: 'shells', image: minimalImage })
  },
})

async function open(): Promise<ShellPage> {
  const page = await browser.page(program, `/sessions/${session.id}`)
  const wire = new Wire(page)
  await page.goto(`${program.url}/sessions/${session.id}/terminal`)
  const shell = new ShellPage(page, wire)
  await shell.ready()
  return shell
}

describe('a terminal with several shells', () => {
  it('divides a tab into panes, which keep their places and their shells over a reload', async () => {
    const shell = await open()
    const { page } = shell
    await page.locator('[data-tab]').first().waitFor()
    const before = await page.locator('[data-tab]').count()
    await shell.run('clear; pane=left')
    const shown = () => page.locator('[data-active="true"]').getAttribute('data-testid')
    const divided = async (panes: number, divide: () => Promise<void>) => {
      const old = await shown()
      await divide()
      await eventually(
        `${panes} panes, the new one in use`,
        async () => (await page.locator(`[data-panes="${panes}"]`).count()) === 1 && (await shown()) !== old,
      )
      await shell.ready()
    }
    await divided(2, () => page.keyboard.press('Control+Shift+E'))
    await shell.run('echo "pane is [$pane]"; pane=right')
    expect(await shell.rows()).toContain('pane is []')
    await divided(3, () => page.getByRole('button', { name: 'Split down' }).click())
    await picture(page, 'terminal-panes')
    expect(await page.locator('[data-tab]').count()).toBe(before)
    const third = await shown()
    await page.keyboard.press('Control+Shift+ArrowLeft')
    await eventually('the pane at the left is in use', async () => (await shown()) !== third)
    await shell.run('echo "back in $pane"')
    expect(await shell.rows()).toContain('back in left')
    const line = page.getByRole('separator').first()
    await line.focus()
    await page.keyboard.press('ArrowRight')
    expect(await line.getAttribute('aria-valuenow')).toBe('55')
    await page.reload()
    await shell.live()
    await eventually('the panes are there again', async () => (await page.locator('[data-panes="3"]').count()) === 1)
    expect(await page.getByRole('separator').first().getAttribute('aria-valuenow')).toBe('55')
    await shell.run('echo "still $pane"')
    expect(await shell.rows()).toContain('still left')
    const left = await shown()
    await page.keyboard.press('Control+Shift+ArrowRight')
    await eventually('the pane at the right is in use', async () => (await shown()) !== left)
    await shell.type('exit')
    await page.locator('[data-active="true"]').getByRole('button', { name: 'Close' }).click()
    await eventually(
      'its place went to its neighbour',
      async () => (await page.locator('[data-panes="2"]').count()) === 1,
    )
    await page
      .getByRole('group', { name: 'Shells' })
      .getByRole('button', { name: /^Close / })
      .last()
      .click()
  })

  it('keeps the look, the bell and the guard of pastes that were chosen', async () => {
    const shell = await open()
    const { page } = shell
    await page.getByRole('button', { name: 'Terminal settings' }).click()
    const choose = async (name: string, option: string) => {
      await page.getByRole('combobox', { name }).click()
      await page.getByTitle(option, { exact: true }).last().click()
    }
    await choose('Colours', 'High contrast')
    await choose('Ask before pasting', 'Several lines')
    await page.getByRole('switch', { name: 'Screen reader support' }).click()
    await picture(page, 'terminal-settings')
    await page.keyboard.press('Escape')
    await eventually('the choices are stored', async () => {
      const { terminalTheme, terminalPaste, terminalReader } = await program.call<Settings>('GET', '/settings')
      return terminalTheme === 'contrast' && terminalPaste === 'several' && terminalReader
    })
    await page.reload()
    await shell.ready()
    const stage = page.locator('[data-active="true"] .xterm').locator('xpath=../..')
    await eventually(
      'it is black',
      async () => (await stage.evaluate((element) => getComputedStyle(element).backgroundColor)) === 'rgb(0, 0, 0)',
    )
    await page.locator('[data-active="true"] .xterm-accessibility').waitFor({ state: 'attached' })
    await page.evaluate(() => navigator.clipboard.writeText('one\ntwo'))
    await page.locator('[data-active="true"] .xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Shift+V')
    await page.getByRole('dialog', { name: 'Paste 2 lines?' }).getByRole('button', { name: 'Cancel' }).click()
    // The bell of a shell that is not looked at is told at its tab.
    await shell.type('(until [ -e ring ]; do sleep 0.2; done; printf "\\a") &')
    const first = await page.locator('[data-active="true"]').getAttribute('data-testid')
    await page.getByRole('button', { name: 'New shell' }).click()
    await eventually(
      'another shell is looked at',
      async () => (await page.locator('[data-active="true"]').getAttribute('data-testid')) !== first,
    )
    await program.cli('exec', session.id, '--', 'touch', 'ring')
    await page.getByRole('img', { name: 'Bell' }).waitFor()
    await page.locator('[data-tab]').first().click()
    await page.getByRole('img', { name: 'Bell' }).waitFor({ state: 'detached' })
    await page.evaluate(() => localStorage.clear())
    await page
      .getByRole('group', { name: 'Shells' })
      .getByRole('button', { name: /^Close / })
      .last()
      .click()
  })

  it('finds what any shell of the session has printed, and goes there; and hands its output out', async () => {
    const shell = await open()
    const { page } = shell
    await shell.run('clear; printf "\\033[31mneedle-%s\\033[0m in the hay\\n" 4711')
    await page.getByRole('button', { name: 'New shell' }).click()
    await eventually('two tabs', async () => (await page.locator('[data-tab]').count()) >= 2)
    await page.locator('[data-tab]').last().click()
    await shell.ready()
    await page.getByRole('button', { name: 'Search all shells' }).click()
    const dialog = page.getByRole('dialog', { name: 'Search all shells' })
    await dialog.getByRole('searchbox').fill('NEEDLE-4711')
    await page.keyboard.press('Enter')
    await picture(page, 'terminal-search-all')
    await dialog.getByRole('button', { name: /^needle-4711 in the hay$/ }).click()
    await page.getByRole('search').getByText('1 of 1').waitFor()
    await eventually('the line is shown', async () => (await shell.rows()).includes('needle-4711 in the hay'))
    await page.keyboard.press('Escape')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        await page.locator('[data-active="true"] .xterm-screen').click({ button: 'right' })
        await page.getByRole('menuitem', { name: 'Download the output' }).click()
      })(),
    ])
    const text = readFileSync(await download.path(), 'utf8')
    expect(download.suggestedFilename()).toMatch(/^shells-terminal-.*\.txt$/)
    expect(text).toContain('\nneedle-4711 in the hay\n')
    expect(text).not.toContain('\u001b')
    await page.locator('[data-tab]').last().hover()
    await page
      .getByRole('group', { name: 'Shells' })
      .getByRole('button', { name: /^Close / })
      .last()
      .click()
  })
})
