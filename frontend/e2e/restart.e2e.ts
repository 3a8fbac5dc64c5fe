import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { eventually, minimalImage, Program } from './program'
import { numbers, ShellPage, upTo, Wire } from './shellPage'

const program = new Program('docker')
const browser = new Browser()

stage(program, browser, { afresh: true })

/** A directory that is mounted: Slipway's own cannot be. */
const told = mkdtempSync(join(tmpdir(), 'slipway-told-'))
afterAll(() => rmSync(told, { recursive: true, force: true }))

describe('the control plane', () => {
  it('may be killed while a terminal is open: the shell survives and no byte is lost either way', async () => {
    // The shell counts until it is told to stop, so that it is still at it after each cut, however long one takes.
    const session = await program.running({
      name: 'killed-under',
      image: minimalImage,
      mounts: [{ source: told, target: 'told', readOnly: true }],
    })
    const page = await browser.page(program, `/sessions/${session.id}`)
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('clear; export BEFORE=kept; echo "shell $$"')
    const pid = /^shell (\d+)$/m.exec(await shell.rows())?.[1]
    await shell.type(
      'stty -echo; i=0; while [ ! -e told/stop ]; do i=$((i+1)); echo "kill $i"; sleep 0.02; done; echo "count ' +
        '$i"; stty echo',
    )
    for (const cut of [1, 2]) {
      const before = (await shell.output()).length
      await eventually('output comes', async () => (await shell.output()).length > before + 300)
      await program.kill()
      await page.locator('[data-active="true"][data-state="reconnecting"]').waitFor()
      if (cut === 1) await picture(page, 'terminal-reconnecting')
      // Typed while nobody answers: it arrives later, once.
      await page.keyboard.type(`echo "typed away ${cut} $BEFORE"`)
      await page.keyboard.press('Enter')
      await program.start()
      await shell.live()
    }
    writeFileSync(join(told, 'stop'), '')
    await shell.saw('typed away 2 kept')
    const all = await shell.everything()
    expect(numbers(all, 'kill')).toEqual(upTo(numbers(all, 'count')[0] ?? 0))
    expect(all.match(/^typed away 1 kept$/gm)).toHaveLength(1)
    expect(all.match(/^typed away 2 kept$/gm)).toHaveLength(1)
    expect(wire.gaps).toBe(0)
    await shell.run('echo "still $$"')
    expect(await shell.rows()).toContain(`still ${pid}`)
    expect(wire.attached.length).toBeGreaterThanOrEqual(3)
  })

  it('may stop and start under an open page, which finds it again and shows what changed meanwhile', async () => {
    const session = await program.running({ name: 'seen-again', image: minimalImage })
    const page = await browser.page(program)
    await row(page, 'seen-again').getByText('Running').waitFor()
    await page.getByText('Connected').waitFor()
    await program.stop()
    await page.getByText('Slipway is not responding').waitFor()
    await picture(page, 'sessions-reconnecting')
    await program.start()
    await page.getByText('Connected').waitFor()
    await program.call('PATCH', `/sessions/${session.id}`, { name: 'renamed-meanwhile' })
    await row(page, 'renamed-meanwhile').getByText('Running').waitFor()
    expect((await program.status(session.id, 'RUNNING')).status).toBe('RUNNING')
  })
})
