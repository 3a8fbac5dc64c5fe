import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import type { Session } from '@/api/types.gen'
import { appsOf, inSession, installed, openedBy, tile } from './appsPage'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { escape } from './keys'
import { row } from './launcherPage'
import { eventually, freePort, minimalImage, Program } from './program'

// Whose ssh is set up here.
const person = mkdtempSync(join(tmpdir(), 'slipway-person-'))
const program = new Program('docker', { SLIPWAY_SSH_DIR: person })
const browser = new Browser()
let session: Session

// Hooks run from the last to the first: the folder goes when the program has ended.
afterAll(() => rmSync(person, { recursive: true, force: true }))
stage(program, browser, {
  prepare: async () => {
    session = await program.running({ name: 'many-apps', image: minimalImage })
  },
})

const sh = (script: string) => inSession(program, session, script)
const dialog = () => appsOf(browser, program, session)
const opened = (click: () => Promise<void>) => openedBy(browser, click)

/** Answers anything once it is let, so that it is seen starting, and notes each start. */
const editor = `
import http.server, os, sys, time
open('/home/work/starts', 'a').write('once\\n')
while not os.path.exists('/home/work/listen'): time.sleep(0.1)
port = int(next(a for a in sys.argv if a.startswith('--bind-addr=')).rsplit(':', 1)[1])
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'<h1>an editor</h1>'
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', port), Page).serve_forever()`

// Section 12, "App launcher": 1 opened and closed · 2 each kind launched (Jupyter for real in jupyter.e2e.ts) · 3 open
// to
// everybody, preferred port and what is wrong with one · 4 how ssh connects · 5 what is asked for · 6 progress,
// success,
// failure · 7 a directory is asked for (apps.e2e.ts) · 8 ended session, missing port, relaunch, dialogs over one
// another · 10 keyboard,
// loading, narrow. 3.2 (who may reach a public port) and 9 (ways of its proxy) are nothing that Slipway has.
describe('the dialog of apps', () => {
  const opener = (page: Page) => row(page, 'many-apps').getByRole('button', { name: 'Apps' })
  const box = (page: Page) => page.getByRole('dialog', { name: 'Apps of many-apps' })

  it('opens from list, drawer and address, and closes by its button, Escape and a click outside', async () => {
    const page = await browser.page(program)
    const closings = [
      () => box(page).getByRole('button', { name: 'Close' }).click(),
      () => escape(page),
      () => page.mouse.click(20, 780),
    ]
    for (const close of closings) {
      await opener(page).click()
      await box(page).getByRole('region', { name: 'Apps', exact: true }).waitFor()
      expect(page.url()).toContain(`apps=${session.id}`)
      await close()
      await box(page).waitFor({ state: 'detached' })
      expect(page.url()).not.toContain('apps=')
    }
    await page.goto(`${program.url}/sessions/${session.id}`)
    await page.getByRole('dialog', { name: 'many-apps' }).getByRole('button', { name: 'Apps' }).click()
    await box(page).waitFor()
    await page.reload()
    await box(page).getByRole('region', { name: 'Ports' }).or(tile(page, 'terminal')).first().waitFor()
  })

  it('is worked by the keyboard alone, and gives the focus back', async () => {
    const page = await browser.page(program)
    await opener(page).focus()
    await page.keyboard.press('Enter')
    await tile(page, 'terminal').waitFor()
    const inTile = () => page.evaluate(() => document.activeElement?.closest('[data-app]')?.getAttribute('data-app'))
    const reached = () =>
      eventually('the terminal is reached', async () => {
        if ((await inTile()) === 'terminal') return true
        await page.keyboard.press('Tab')
        return false
      })
    await reached()
    await page.keyboard.press('Tab')
    expect(await inTile()).toBe('ssh')
    await escape(page)
    await box(page).waitFor({ state: 'detached' })
    await eventually('the button has the focus again', () =>
      opener(page).evaluate((button) => button === document.activeElement),
    )
    await page.keyboard.press('Enter')
    await tile(page, 'terminal').waitFor()
    await reached()
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/sessions/${session.id}/terminal`)
  })

  it('starts an app on demand, says so, and reaches the same one when it is opened again', async () => {
    await installed(program, session, 'code-server', editor)
    const page = await dialog()
    const button = tile(page, 'code-server').getByRole('button', { name: /^code-server/ })
    const asked = page.waitForRequest(`**/sessions/${session.id}/apps/code-server/open`)
    const clicked = opened(() => button.click())
    await tile(page, 'code-server')
      .getByText(/^Starting…/)
      .waitFor()
    await tile(page, 'code-server').getByRole('progressbar').waitFor()
    await sh('touch listen')
    expect(((await asked).postDataJSON() as Record<string, unknown>).port).toBeUndefined()
    const first = await clicked
    await first.getByRole('heading', { name: 'an editor' }).waitFor()
    await tile(page, 'code-server').getByText('Ready').waitFor()
    const second = await opened(() => button.click())
    await second.getByRole('heading', { name: 'an editor' }).waitFor()
    expect(new URL(second.url()).host).toBe(new URL(first.url()).host)
    expect(await sh('wc -l < starts')).toBe('1\n')
    await tile(page, 'code-server').getByRole('button', { name: 'Stop code-server' }).click()
    await tile(page, 'code-server').getByText('Not started').waitFor()
    await opened(() => button.click())
    await tile(page, 'code-server').getByText('Ready').waitFor()
    expect(await sh('wc -l < starts')).toBe('2\n')
  })

  it('refuses a port that cannot be had, and sends what is wished for', async () => {
    const page = await dialog()
    await sh('python3 -m http.server 8125 >/dev/null 2>&1 & echo $! > server.pid')
    await tile(page, 'port-8125').getByRole('button', { name: 'Options for Port 8125' }).click()
    const form = page.getByRole('form', { name: 'Open Port 8125' })
    const go = form.getByRole('button', { name: 'Open Port 8125' })
    for (const wrong of ['80', '1023', '65536']) {
      await form.getByRole('spinbutton').fill(wrong)
      await form.getByRole('alert').getByText('Enter a port from 1024 to 65535.').waitFor()
      expect(await go.isDisabled()).toBe(true)
      await form.getByRole('spinbutton').press('Enter')
      expect(await form.getByRole('spinbutton').inputValue()).toBe(wrong)
    }
    await picture(page, 'apps-wrong-port')
    const port = await freePort()
    await form.getByRole('spinbutton').fill(String(port))
    const asked = page.waitForRequest(`**/apps/port-8125/open`)
    await opened(() => go.click())
    expect((await asked).postDataJSON()).toEqual({ window: true, port })
    await tile(page, 'port-8125').getByText(`Also on port ${port} of this computer`).waitFor()
    await tile(page, 'port-8125').getByRole('button', { name: 'Close the port of Port 8125' }).click()
    await sh('kill $(cat server.pid)')
  })

  it('shows how ssh connects over itself, tries it, and offers the editor', async () => {
    const page = await dialog()
    await tile(page, 'ssh').getByRole('button').click()
    const ssh = page.getByRole('dialog', { name: 'Connect to many-apps by SSH' })
    for (const [name, start] of [
      ['ssh', 'ssh '],
      ['scp', 'scp '],
      ['sftp', 'sftp '],
      ['rsync', 'rsync '],
      ['forward', 'ssh '],
    ] as const) {
      expect(await ssh.locator(`[data-command="${name}"] code`).innerText()).toMatch(new RegExp(`^(slipway )?${start}`))
    }
    await ssh.getByRole('button', { name: 'Test the connection' }).click()
    await ssh.getByText(/^Login works/).waitFor()
    // An editor knows a session by what one's own ssh knows.
    const editor = ssh.getByRole('link', { name: 'Open in VS Code' })
    expect(await editor.count()).toBe(0)
    await ssh.getByRole('button', { name: 'Set up SSH' }).click()
    expect(await editor.getAttribute('href')).toMatch(/^vscode:\/\/vscode-remote\/ssh-remote\+many-apps\/home\/work/)
    expect(readFileSync(join(person, 'config'), 'utf8')).toContain(program.home)
    await ssh.getByRole('button', { name: 'Remove from ~/.ssh/config' }).click()
    await editor.waitFor({ state: 'detached' })
    expect(existsSync(join(person, 'config'))).toBe(false) // nothing else was in it
    await escape(page)
    await ssh.waitFor({ state: 'detached' })
    expect(await box(page).isVisible()).toBe(true)
  })

  it('says that nothing listens on a port, that a session has ended, and that there is no session', async () => {
    const other = await program.running({ name: 'other-apps', ports: [8080] })
    const page = await browser.page(program, `/sessions?apps=${other.id}`)
    const port = page.locator('[data-app="port-8080"]')
    await port.getByText('Not listening').waitFor()
    await port.getByRole('button', { name: /^Port 8080/ }).click()
    await port.getByText('Nothing in the session listens on port 8080.').waitFor()
    await port.getByText(/^Start your program there/).waitFor()
    expect(browser.context.pages().filter((tab) => tab.url().includes('port-8080'))).toEqual([])
    await program.call('POST', `/sessions/${other.id}/terminate`, { forced: true })
    await page.getByText('The session has ended').waitFor()
    await page.goto(`${program.url}/sessions?apps=nosuchthing`)
    await page
      .getByRole('dialog')
      .getByRole('alert')
      .getByText(/session_.*_not-found/)
      .waitFor()
    await picture(page, 'apps-unknown')
  })

  it('shows that it is loading, and fits where there is little room', async () => {
    const page = await browser.page(program)
    await page.setViewportSize({ width: 480, height: 640 })
    let go = () => {}
    const held = new Promise<void>((done) => (go = done))
    await page.route(`**/sessions/${session.id}/apps`, (route) => held.then(() => route.continue()))
    await page.goto(`${program.url}/sessions?apps=${session.id}`)
    await box(page).locator('.ant-skeleton-button').waitFor()
    go()
    await box(page).locator('.ant-skeleton-button').waitFor({ state: 'detached' })
    await tile(page, 'terminal').waitFor()
    const bounds = await box(page).boundingBox()
    expect((bounds?.x ?? -1) >= 0 && (bounds?.x ?? 0) + (bounds?.width ?? 999) <= 480).toBe(true)
    await picture(page, 'apps-narrow')
    await page.setViewportSize({ width: 1280, height: 800 })
  })
})
