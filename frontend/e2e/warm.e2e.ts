import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { eventually, Program } from './program'

// A container waits for a session like the last one, and the machine says so.
const program = new Program('docker', { SLIPWAY_SESSION_WARM: '1' })
const browser = new Browser()

stage(program, browser, {})

const waiting = () => eventually('a container waits', async () => (await program.machines())[0]?.warm === 1)

const docker = (...args: string[]) => execFileSync('docker', args, { encoding: 'utf8' }).trim()

/** The containers that Docker has of the agent that made this one. */
function siblings(container: string): string[] {
  const instance = docker('inspect', '--format', '{{index .Config.Labels "slipway.instance"}}', container)
  return docker('ps', '-q', '--no-trunc', '--filter', `label=slipway.instance=${instance}`).split('\n')
}

describe('a session like the last one', () => {
  it('gets the container that waits, and the machine shows how many wait', async () => {
    const first = await program.launch({ name: 'first' })
    await waiting()
    const page = await browser.page(program, '/agents/local')
    await page.getByText('1 container waits for a launch like one of the last').waitFor()
    await picture(page, 'warm-machine')
    const own = (await program.session(first.id)).kernels[0]?.container ?? ''
    const [warm] = siblings(own).filter((id) => id !== own)
    const next = await program.launch({ name: 'next' })
    await eventually('it runs', async () => (await program.session(next.id)).status === 'RUNNING')
    expect((await program.session(next.id)).kernels[0]?.container).toBe(warm)
    const said = await program.cli('exec', 'next', '--', 'sh', '-c', 'echo $SLIPWAY_SESSION_NAME; id -un')
    expect(said).toBe('next\nwork\n')
  })
})
