import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Opened, Session } from '@/api/types.gen'
import { appsOf, inSession, installed, openedBy, tile } from './appsPage'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { eventually, freePort, minimalImage, pipImage, Program } from './program'

const program = new Program('docker')
const browser = new Browser()
let session: Session

stage(program, browser, {
  prepare: async () => {
    session = await program.running({ name: 'many-apps', image: minimalImage })
  },
})

const sh = (script: string) => inSession(program, session, script)
const install = (name: string, lines: string) => installed(program, session, name, lines)

/**
 * Answers as TensorBoard does where it is asked to: on the port of its arguments, about the directory of its
 * arguments.
 */
const board = `
import http.server, sys
args = dict(a.lstrip('-').split('=', 1) for a in sys.argv[1:])
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ('<title>board</title>runs of ' + args['logdir']).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer((args['host'], int(args['port'])), Page).serve_forever()`

/** Makes a package in ~/wheels that pip takes for JupyterLab, whose program is one page. */
const wheel = `
import os, zipfile
info, module = 'jupyterlab-99.0.dist-info/', 'slipway_test_lab.py'
os.makedirs('wheels')
with zipfile.ZipFile('wheels/jupyterlab-99.0-py3-none-any.whl', 'w') as z:
    z.writestr(module, """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(b'<h1>installed by pip</h1>')
def main():
    port = next(int(a.split('=')[1]) for a in sys.argv if a.startswith('--port='))
    http.server.ThreadingHTTPServer(('127.0.0.1', port), Page).serve_forever()
""")
    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: jupyterlab\\nVersion: 99.0\\n')
    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr(info + 'entry_points.txt', '[console_scripts]\\njupyter-lab = slipway_test_lab:main\\n')
    z.writestr(info + 'RECORD', '')`

const dialog = () => appsOf(browser, program, session)
const opened = (click: () => Promise<void>) => openedBy(browser, click)

// Section 12, "App launcher", is shown here and in tiles.e2e.ts, which says by what.
describe('apps', () => {
  it('appear by themselves when a program begins to listen, and go with it', async () => {
    const page = await dialog()
    await page.getByText('No other apps found').waitFor()
    await sh(
      'mkdir -p site && echo "<h1>served from the session</h1>" > site/index.html; python3 -m http.server 8123 ' +
        '-d site >/dev/null 2>&1 & echo $! > server.pid',
    )
    await tile(page, 'port-8123').getByText('Listening, detected automatically').waitFor()
    await picture(page, 'apps-found')
    const tab = await opened(() => tile(page, 'port-8123').getByRole('button').first().click())
    expect(await tab.getByRole('heading').innerText()).toBe('served from the session')
    expect(new URL(tab.url()).hostname).toBe(`port-8123-${session.id}.localhost`)
    expect(await program.cli('apps', session.id)).toMatch(/port-8123 .*ready/)
    await sh('kill $(cat server.pid)')
    await tile(page, 'port-8123').waitFor({ state: 'detached' })
  })

  it('show the directory that was asked for, and another one on demand at the same address', async () => {
    await install('tensorboard', board)
    const page = await dialog()
    await tile(page, 'tensorboard')
      .getByRole('button', { name: /^TensorBoard/ })
      .click()
    const form = page.getByRole('form', { name: 'Open TensorBoard' })
    expect(await form.getByRole('textbox', { name: 'Directory' }).inputValue()).toBe('/home/work/logs')
    await picture(page, 'apps-directory')
    const first = await opened(() => form.getByRole('button', { name: 'Open TensorBoard' }).click())
    await first.getByText('runs of /home/work/logs').waitFor()
    await tile(page, 'tensorboard').getByText('Ready').waitFor()
    await tile(page, 'tensorboard').getByRole('button', { name: 'Options for TensorBoard' }).click()
    await form.getByRole('textbox', { name: 'Directory' }).fill('experiments/7')
    const second = await opened(() => form.getByRole('button', { name: 'Open TensorBoard' }).click())
    await second.getByText('runs of /home/work/experiments/7').waitFor()
    expect(new URL(second.url()).host).toBe(new URL(first.url()).host)
    expect(await program.cli('open', session.id, 'tensorboard', '--print')).toContain(
      `tensorboard-${session.id}.localhost`,
    )
    expect((await program.apps(session.id)).find((app) => app.id === 'tensorboard')?.dir).toBe(
      '/home/work/experiments/7',
    )
  })

  it('are opened to everybody by a preferred port, or another one that is told, and closed again', async () => {
    await sh(
      'mkdir -p site && echo "<h1>for everybody</h1>" > site/index.html; python3 -m http.server 8124 -d site ' +
        '>/dev/null 2>&1 & echo $! > server.pid',
    )
    const page = await dialog()
    const port = await freePort()
    await tile(page, 'port-8124').getByRole('button', { name: 'Options for Port 8124' }).click()
    const form = page.getByRole('form', { name: 'Open Port 8124' })
    await form.getByRole('spinbutton').fill(String(port))
    await form.getByRole('checkbox').check()
    await form.getByText('without a login').waitFor()
    await picture(page, 'apps-public-form')
    const tab = await opened(() => form.getByRole('button', { name: 'Open Port 8124 to everyone' }).click())
    expect(new URL(tab.url()).port).toBe(String(port))
    await tab.getByRole('heading', { name: 'for everybody' }).waitFor()
    await tile(page, 'port-8124').getByText(`Open to everyone on port ${port}`).waitFor()
    await picture(page, 'apps-public')
    // Somebody without any cookie or ticket.
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('for everybody')
    expect((await fetch(`http://127.0.0.1:${port}/api/v1/sessions`)).status).toBe(404)
    await tile(page, 'port-8124').getByRole('button', { name: 'Close the port of Port 8124' }).click()
    await tile(page, 'port-8124').getByText('Open to everyone').waitFor({ state: 'detached' })
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
    // The port of the program itself is in use: another one is opened for the one person alone.
    const own = Number(new URL(program.url).port)
    const answer = await program.call<Opened>('POST', `/sessions/${session.id}/apps/port-8124/open`, { port: own })
    expect([answer.app.door?.instead, answer.app.door?.public, answer.app.door?.port === own]).toEqual([
      true,
      false,
      false,
    ])
    expect(new URL(answer.url).searchParams.has('slipway_ticket')).toBe(true)
    await program.cli('open', session.id, 'port-8124', '--close')
    expect((await program.apps(session.id)).find((app) => app.id === 'port-8124')?.door).toBeUndefined()
    await sh('kill $(cat server.pid)')
  })

  it('are given up while they start, in the notification and on the tile, and leave nothing behind', async () => {
    // Never listens.
    await install('code-server', "import os, signal\nopen('code.pid', 'w').write(str(os.getpid()))\nsignal.pause()")
    const running = async () =>
      (await sh('kill -0 "$(cat code.pid)" 2>/dev/null && echo yes || echo no')).trim() === 'yes'
    const page = await dialog()
    const code = tile(page, 'code-server')
    const begin = async () => {
      const [tab] = await Promise.all([
        browser.context.waitForEvent('page'),
        code.getByRole('button', { name: /^code-server/ }).click(),
      ])
      await code.getByText(/^Starting…/).waitFor()
      await code.getByRole('progressbar').waitFor()
      await eventually('its program runs', running)
      return tab
    }
    const left = async (tab: Page) => {
      await eventually('its tab is closed', () => Promise.resolve(tab.isClosed()))
      await eventually('its program has ended', async () => !(await running()))
      await eventually('it is stopped', async () => {
        const app = (await program.apps(session.id)).find(({ id }) => id === 'code-server')
        return app?.state === 'stopped'
      })
    }
    const first = await begin()
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    const card = page.locator('[data-opening="code-server"]')
    await card.getByText(/^Starting…/).waitFor()
    await picture(page, 'apps-starting')
    await card.getByRole('button', { name: 'Cancel starting code-server' }).click()
    await card.waitFor({ state: 'detached' })
    await left(first)
    await page.goto(`${program.url}/sessions?apps=${session.id}`)
    await code.getByText('Not started').waitFor()
    const second = await begin()
    await code.getByRole('button', { name: 'Cancel starting code-server' }).click()
    await code.getByText('Not started').waitFor()
    await left(second)
    expect(await code.getByRole('alert').count()).toBe(0)
  })

  it('are installed into a session whose image lacks them, with one click', async () => {
    const env = [
      { name: 'PIP_NO_INDEX', value: '1' },
      { name: 'PIP_FIND_LINKS', value: '/home/work/wheels' },
    ]
    const lacking = await program.running({ name: 'lacks-jupyter', image: pipImage, env })
    await inSession(program, lacking, `python3 - <<'END'${wheel}\nEND`)
    const page = await appsOf(browser, program, lacking)
    const lab = tile(page, 'jupyterlab')
    await lab.getByText('Not in the image').waitFor()
    await picture(page, 'apps-lacking')
    await lab.getByRole('button', { name: /^Install JupyterLab/ }).click()
    await lab.getByText('Ready').waitFor()
    await picture(page, 'apps-installed')
    const tab = await opened(() => page.getByRole('link', { name: 'Open it here' }).click())
    await tab.getByRole('heading', { name: 'installed by pip' }).waitFor()
  })

  it('say why one could not be started, in the notification when the dialog is closed', async () => {
    await install(
      'code-server',
      "import os, sys, time\nwhile not os.path.exists('/home/work/fail'): time.sleep(0.1)\n" +
        "sys.exit('the settings file is broken at line 3')",
    )
    const page = await dialog()
    await tile(page, 'code-server')
      .getByRole('button', { name: /^code-server/ })
      .click()
    await tile(page, 'code-server')
      .getByText(/^Starting…/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    const card = page.locator('[data-opening="code-server"]')
    await card.getByText(/^Starting…/).waitFor()
    await sh('touch fail')
    await card.getByText(/ended with code 1 before it answered: the settings file is broken at line 3/).waitFor()
    await picture(page, 'apps-failed')
    await card.getByRole('button', { name: 'Dismiss the notification of code-server' }).click()
    await card.waitFor({ state: 'detached' })
    await sh('rm ~/.local/bin/code-server')
    await eventually('it is no longer offered', async () =>
      (await program.apps(session.id)).every((app) => app.id !== 'code-server'),
    )
    await expect(program.call('POST', `/sessions/${session.id}/apps/code-server/open`, {})).rejects.toThrow(
      'app_start_not-installed',
    )
  })
})
