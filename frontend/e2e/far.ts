import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binary, eventually, freePort } from './program'

/** Far is `slipway agent --listen` with files of its own, as it runs on another machine. */
export class Far {
  readonly home = mkdtempSync(join(tmpdir(), 'slipway-far-'))
  #port = 0
  #process: ChildProcess | undefined
  #said = ''

  get address(): string {
    return `slipway://127.0.0.1:${this.#port}`
  }

  /** Starts it, each time on the same port. */
  async start(): Promise<void> {
    this.#port ||= await freePort()
    const child = spawn(binary, ['agent', '--engine', 'sim', '--listen', `127.0.0.1:${this.#port}`], {
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    this.#said = ''
    const hear = (chunk: Buffer) => {
      this.#said += chunk.toString()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    await eventually('the agent runs', async () => {
      if (child.exitCode !== null) throw new Error(`the agent ended with ${child.exitCode}: ${this.#said}`)
      return this.#said.includes('The agent of this machine runs')
    })
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, SLIPWAY_HOME: this.home, XDG_RUNTIME_DIR: this.home }
  }

  /** A code as `slipway agent pair` prints it there, for a device of the agent's own person, or of somebody else's. */
  code(owner = ''): string {
    const told = execFileSync(binary, ['agent', 'pair', '-o', 'json', ...(owner === '' ? [] : ['--owner', owner])], {
      env: this.#env,
      encoding: 'utf8',
    })
    return (JSON.parse(told) as { code: string }).code
  }

  /** Takes its key away: what starts next is another agent to whoever knew it. */
  loseKey(): void {
    rmSync(join(this.home, 'agent.key'))
  }

  async stop(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }

  async close(): Promise<void> {
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}
