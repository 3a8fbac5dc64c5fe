import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { enter, launch, row } from './launcherPage'
import { Program } from './program'
import { ShellPage, Wire } from './shellPage'

// Without Docker everything looks the same, says that it is simulated, and a terminal still takes commands.
const program = new Program('sim')
const browser = new Browser({ width: 1920, height: 1080 })

stage(program, browser, { afresh: true })

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
