import type { Locator, Page } from 'playwright-core'
import type { Session } from '@/api/types.gen'
import type { Browser } from './browser'
import type { Program } from './program'

/** Runs a script in a session and returns what it printed. */
export const inSession = (program: Program, session: Session, script: string): Promise<string> =>
  program.cli('exec', session.id, '--', 'sh', '-c', script)

/** Puts a program of that name into the session's PATH, in Python. */
export const installed = (program: Program, session: Session, name: string, lines: string): Promise<string> =>
  inSession(
    program,
    session,
    `mkdir -p ~/.local/bin && cat > ~/.local/bin/${name} <<'END'\n#!/usr/bin/python3\n${lines}\nEND\nchmod +x ` +
      `~/.local/bin/${name}`,
  )

/** A page with the dialog of a session's apps open. */
export async function appsOf(browser: Browser, program: Program, session: Session): Promise<Page> {
  const page = await browser.page(program, `/sessions?apps=${session.id}`)
  await page.getByRole('dialog', { name: `Apps of ${session.name}` }).waitFor()
  return page
}

export const tile = (page: Page, app: string): Locator => page.locator(`[data-app="${app}"]`)

/** Clicks and returns the tab that the app appears in. */
export async function openedBy(browser: Browser, click: () => Promise<void>): Promise<Page> {
  const [tab] = await Promise.all([browser.context.waitForEvent('page'), click()])
  await tab.waitForURL(/\.localhost:/)
  return tab
}
