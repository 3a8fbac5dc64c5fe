import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Agent, App, LoginLink, Machine, Recent, Service, Session, Spec } from '@/api/types.gen'

type Engine = 'docker' | 'sim'

export const binary = resolve(process.env.SLIPWAY_BIN ?? '../build/bin/slipway')
export const notebookImage = 'slipway-test/notebook:1'
export const labImage = 'slipway-test/lab:1'
export const notebook7Image = 'slipway-test/nb7:1'
export const minimalImage = 'slipway-test/minimal:1'
export const pipImage = 'slipway-test/pip:1'

const ended = new Set(['TERMINATED', 'CANCELLED', 'ERROR'])

/**
 * Asks again until there is an answer, at most for so many milliseconds. The only wait of these tests that has a
 * clock.
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  limit = 120_000,
): Promise<T> {
  const until = Date.now() + limit
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (Date.now() > until) throw new Error(`not within ${limit / 1000} s: ${what}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}

/**
 * A port of the loopback that is free, below those that a system gives away by
 * itself, and no program's usual one: nobody else takes it while its user is away.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const server = createServer()
    const free = new Promise<boolean>((answer) =>
      server.once('listening', () => answer(true)).once('error', () => answer(false)),
    )
    server.listen(port, '127.0.0.1')
    if (!(await free)) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Program is `slipway serve` with files of its own, and the API as a script would use it. */
export class Program {
  readonly home = mkdtempSync(join(tmpdir(), 'slipway-e2e-'))
  /** The disk of its simulated machine. */
  readonly disk = join(this.home, 'sim', 'disk')
  readonly engine: Engine
  url = ''
  #port = 0
  #process: ChildProcess | undefined
  #said = ''

  /** What is started next: another version of the program takes over the files of the one before. */
  path = binary

  readonly #more: NodeJS.ProcessEnv

  /** Environment variables in more are told to the program besides. */
  constructor(engine: Engine, more: NodeJS.ProcessEnv = {}) {
    this.engine = engine
    this.#more = more
  }

  /** What serves, but for its port. */
  protected command(): string[] {
    return ['serve', '--engine', this.engine]
  }

  async start(): Promise<void> {
    if (!existsSync(this.path)) throw new Error(`${this.path} is missing: run make build first`)
    const docker = process.env.SLIPWAY_TEST_DOCKER
    if (this.engine === 'docker' && !docker)
      throw new Error('SLIPWAY_TEST_DOCKER is not set: run through build/ci/docker.sh')
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      SLIPWAY_HOME: this.home,
      XDG_RUNTIME_DIR: this.home,
      ...this.#more,
    }
    if (docker) env.DOCKER_HOST = this.#more.DOCKER_HOST ?? docker
    this.#port ||= await freePort()
    const child = spawn(this.path, [...this.command(), '--port', String(this.#port)], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    this.#said = ''
    const hear = (chunk: Buffer) => {
      this.#said += chunk.toString()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    this.url = await eventually('serve prints its address', async () => {
      if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}: ${this.#said}`)
      return /^\s+(http:\/\/127\.0\.0\.1:\d+)\/login\?code=/m.exec(this.#said)?.[1]
    })
  }

  /** The address printed by serve itself: it works once. */
  get printedLogin(): string {
    return /http:\/\/127\.0\.0\.1:\d+\/login\?code=\S+/.exec(this.#said)?.[0] ?? ''
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  /** Ends the process as a crash does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Ends the process as Ctrl-C does. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  /**
   * Ends every session but those of the names: the machine may have room for no more than two. Services, which launch
   * theirs again, are removed.
   */
  async endAll(...but: string[]): Promise<void> {
    if (!this.#process || this.#process.exitCode !== null) return
    const over = (session: Session) => ended.has(session.status) || but.includes(session.name)
    for (const { name, agent } of await this.call<Service[]>('GET', '/services'))
      await this.call('DELETE', `/services/${name}?agent=${agent}`).catch(() => undefined)
    for (const session of await this.sessions()) {
      if (!over(session))
        await this.call('POST', `/sessions/${session.id}/terminate`, { forced: true }).catch(() => undefined)
    }
    await eventually('every session has ended', async () => (await this.sessions()).every(over))
  }

  /** Ends every session and the program, and removes its files. */
  async close(): Promise<void> {
    await this.endAll()
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const token = readFileSync(join(this.home, 'token'), 'utf8').trim()
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return (text ? JSON.parse(text) : undefined) as T
  }

  /** Runs the command line as a person would and returns what it printed. */
  async cli(...args: string[]): Promise<string> {
    const child = spawn(binary, args, {
      env: { ...process.env, SLIPWAY_HOME: this.home, XDG_RUNTIME_DIR: this.home, ...this.#more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [said, wrong] = ['', '']
    child.stdout.on('data', (text) => (said += String(text)))
    child.stderr.on('data', (text) => (wrong += String(text)))
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) throw new Error(`slipway ${args.join(' ')}: ${String(code)} ${wrong}`)
    return said
  }

  sessions = () => this.call<Session[]>('GET', '/sessions')
  /** Launches by the API and returns at once. */
  launch = (spec: Partial<Spec>) =>
    this.call<Session>('POST', '/sessions', {
      spec: { image: minimalImage, resources: { cpu: 1, memory: 256 * 1024 ** 2 }, ...spec },
    })
  session = (id: string) => this.call<Session>('GET', `/sessions/${id}`)
  agents = () => this.call<Agent[]>('GET', '/agents')
  machines = () => this.call<Machine[]>('GET', '/machines')
  recents = () => this.call<Recent[]>('GET', '/recents')
  apps = (id: string) => this.call<App[]>('GET', `/sessions/${id}/apps`)
  login = async () => (await this.call<LoginLink>('POST', '/login')).url

  /** Launches by the API and waits until it runs. */
  async running(spec: Partial<Spec> = {}): Promise<Session> {
    const { id } = await this.launch(spec)
    return this.status(id, 'RUNNING')
  }

  async status(id: string, wanted: string): Promise<Session> {
    return eventually(`${id} is ${wanted}`, async () => {
      const session = await this.session(id)
      if (session.status !== wanted && ended.has(session.status))
        throw new Error(`${id} is ${session.status}: ${session.reason} ${session.error?.message ?? ''}`)
      return session.status === wanted && session
    })
  }
}

/** DemoProgram is `slipway demo` in a folder of its own. */
export class DemoProgram extends Program {
  readonly #story: string
  readonly #speed: number

  /** Time passes so many times faster on the machines of the demo. */
  constructor(story = 'lab', speed = 1, more: NodeJS.ProcessEnv = {}) {
    super('sim', more)
    this.#story = story
    this.#speed = speed
  }

  protected override command(): string[] {
    return ['demo', '--story', this.#story, '--speed', String(this.#speed), '--keep', this.home]
  }

  /** Ends the demo, whose sessions end with it, and removes its files. */
  override async close(): Promise<void> {
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}
