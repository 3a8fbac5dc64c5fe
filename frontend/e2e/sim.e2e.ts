import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { tabTo } from './keys'
import { enter, launch, row } from './launcherPage'
import { eventually, Program } from './program'
import { ShellPage, Wire } from './shellPage'

// Without Docker everything looks the same, says that it is simulated, and a terminal still takes commands.
const program = new Program('sim')
const browser = new Browser({ width: 1920, height: 1080 })

stage(program, browser, { afresh: true })

/** How much of what is on a page moves or would: elements that take time to change, and what turns without an end. */
const moving = (page: Page) =>
  page.evaluate(() => {
    const takesTime = (durations: string) => durations.split(',').some((d) => parseFloat(d) > 0.001)
    const styles = [...document.querySelectorAll('*')].flatMap((element) =>
      ['', '::before', '::after'].map((part) => getComputedStyle(element, part)),
    )
    const slow = styles.filter(
      (s) => takesTime(s.transitionDuration) || (s.animationName !== 'none' && takesTime(s.animationDuration)),
    )
    const endless = document
      .getAnimations()
      .filter((a) => a.playState === 'running' && a.effect?.getComputedTiming().endTime === Infinity)
    return slow.length + endless.length
  })

describe('the simulated engine', () => {
  it('begins with nothing, and says so', async () => {
    const page = await browser.page(program, '/folders')
    await page.getByText('No folders yet.').waitFor()
    await page.goto(`${program.url}/sessions`)
    await page.getByText('No running sessions').waitFor()
  })

  it('launches, runs commands in a terminal, and says what it is', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByText('Simulated').waitFor()
    await enter(page, { name: 'make-believe', image: 'python:3.12', memory: 256 })
    await picture(page, 'launcher-confirm-1920')
    await launch(page)
    await row(page, 'make-believe').getByText('Running').waitFor()
    await picture(page, 'sessions-1920')
    const session = (await program.sessions()).find((s) => s.name === 'make-believe')
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session?.id ?? ''}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('echo "sum $((40 + 2))"')
    expect(await shell.rows()).toMatch(/^sum 42$/m)
    await picture(page, 'terminal-1920')
  })

  it('is launched on and used by the keyboard alone', async () => {
    const page = await browser.page(program, '/sessions')
    const press = (key: string) => page.keyboard.press(key)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    await tabTo(page, page.getByRole('link', { name: 'Launcher' }))
    await press('Enter')
    await tabTo(page, page.getByLabel('Name', { exact: true }))
    await page.keyboard.type('by-keys')
    await tabTo(page, button('Next'))
    await press('Enter')
    await tabTo(page, page.getByRole('radio', { name: 'Choose' }))
    await press('ArrowRight')
    await tabTo(page, page.getByRole('combobox', { name: 'Image' }))
    await page.keyboard.type('python:3.12')
    await tabTo(page, page.getByRole('spinbutton', { name: 'CPU' }))
    await press('ArrowUp')
    for (const [forward, to] of [
      ['Next', 'storage'],
      ['Next', 'network'],
      ['Review', 'confirm'],
    ] as const) {
      await tabTo(page, button(forward))
      await press('Enter')
      await page.locator(`button[data-step="${to}"][aria-current="step"]`).waitFor()
    }
    await page.getByRole('heading', { name: 'Command line' }).waitFor()
    await tabTo(page, button('Launch'))
    await press('Enter')
    await tabTo(
      page,
      page.getByRole('dialog', { name: 'Launch without a folder?' }).getByRole('button', { name: 'Launch' }),
    )
    await press('Enter')
    await row(page, 'by-keys').getByText('Running').waitFor()
    await tabTo(page, row(page, 'by-keys').getByRole('button', { name: 'Terminal' }))
    await press('Enter')
    const shell = new ShellPage(page)
    await shell.live()
    await page.waitForFunction(() => document.activeElement?.classList.contains('xterm-helper-textarea'))
  })

  it('stands still for somebody who wants no motion', async () => {
    const session = await program.running({ name: 'calm-one', image: 'python:3.12' })
    const page = await browser.page(program, `/sessions/${session.id}`)
    await page.getByRole('dialog', { name: 'calm-one' }).waitFor()
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    await eventually('something moves', async () => (await moving(page)) > 0)
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await eventually('nothing moves any more', async () => (await moving(page)) === 0)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Force-terminate…' }).click()
    await page.getByRole('dialog', { name: 'Terminate calm-one?' }).waitFor()
    expect(await moving(page)).toBe(0)
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await page.locator('.xterm-cursor').waitFor()
    expect(await page.locator('.xterm-cursor-blink').count()).toBe(0)
    expect(await moving(page)).toBe(0)
  })
})
