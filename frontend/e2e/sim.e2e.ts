import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { watchOver } from './hooks'
import { enter, launch, row } from './launcherPage'
import { Program } from './program'
import { ShellPage, Wire } from './shellPage'

// Without Docker everything looks the same, says that it is simulated, and a terminal still takes commands.
const program = new Program('sim')
let browser: Browser

beforeAll(async () => {
  await program.start()
  browser = await Browser.open({ width: 1920, height: 1080 })
})
afterAll(async () => {
  await browser?.close()
  await program.close()
})
// Hooks run from the last to the first: pictures of what failed come before the end of its sessions.
afterEach(() => program.endAll())
watchOver(() => browser)

describe('the simulated engine', () => {
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
})
