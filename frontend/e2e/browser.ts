import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page, type Request } from 'playwright-core'
import type { Program } from './program'

const results = join(import.meta.dirname, 'results')
mkdirSync(results, { recursive: true })

/** Chromium calls home by itself, whatever it is told; no name but this machine's own leads anywhere. */
const names = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost'
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Half of what a page costs is starting a process for it and compiling scripts that run once.
  '--process-per-site',
  '--js-flags=--no-maglev,--no-turbofan,--always-sparkplug',
  names,
]

/** Whether an address stays on this machine. */
function isLoopback(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  if (['data:', 'blob:', 'about:', 'chrome-error:'].includes(protocol)) return true
  return hostname === '127.0.0.1' || hostname === 'localhost' || hostname.endsWith('.localhost')
}

/** Whether an address is the program's own, not that of an app in a session. */
const isOwn = (address: string): boolean => new URL(address || 'about:blank').hostname === '127.0.0.1'

/**
 * Browser is a Chromium with a profile of its own, once it is started. It notes every request which leaves the
 * machine, and every error of Slipway's own pages.
 */
export class Browser {
  readonly foreign: string[] = []
  readonly errors: string[] = []
  readonly #viewport: { width: number; height: number }
  #context: BrowserContext | undefined
  readonly #profiles: string[] = []
  #loggedIn = ''
  #given = false // whether the test has the first page already

  constructor(viewport = { width: 1280, height: 800 }) {
    this.#viewport = viewport
  }

  static async open(viewport?: { width: number; height: number }): Promise<Browser> {
    const browser = new Browser(viewport)
    await browser.start()
    return browser
  }

  get context(): BrowserContext {
    if (!this.#context) throw new Error('the browser is not started')
    return this.#context
  }

  async start(): Promise<void> {
    const profile = mkdtempSync(join(tmpdir(), 'slipway-chromium-'))
    this.#profiles.push(profile)
    const context = await chromium.launchPersistentContext(profile, {
      // Chromium without a window of its own, which takes a third less of the processors for the same pages.
      executablePath: process.env.SLIPWAY_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
      args: flags,
      viewport: this.#viewport,
      locale: 'en-US',
      reducedMotion: 'reduce', // what still slides on a busy machine is not where one aims
      acceptDownloads: true,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    context.setDefaultTimeout(90_000) // a machine that has much else to do
    context.on('request', (request) => this.#note(request.url()))
    context.on('page', (page) => this.#watch(page))
    context.on('requestfailed', loadAgain)
    context.on('weberror', (error) => {
      // An app's own page may do as it likes.
      if (isOwn(error.page()?.url() ?? '')) this.errors.push(error.error().stack ?? error.error().message)
    })
    context.pages().forEach((page) => this.#watch(page))
    this.#context = context
  }

  #watch(page: Page): void {
    page.on('crash', () => this.errors.push(`${page.url()} crashed`))
    page.on('websocket', (socket) => this.#note(socket.url()))
  }

  #note(address: string): void {
    if (!isLoopback(address)) this.foreign.push(address)
  }

  /** A page that is logged in. The first of a test is the one of the test before, which costs half of a new one. */
  async page(program: Program, path = '/sessions'): Promise<Page> {
    const [kept] = this.#given ? [] : this.context.pages()
    const page = kept ?? (await this.context.newPage())
    this.#given = true
    if (this.#loggedIn !== program.url) {
      await page.goto(await program.login())
      await page.waitForURL((address) => address.pathname !== '/login')
      // the sections, whatever they are called in the person's language
      await page.getByRole('navigation').first().waitFor()
      this.#loggedIn = program.url
    }
    await page.goto(`${program.url}${path}`)
    return page
  }

  /**
   * Closes all pages but the first, which is as new afterwards. A browser that does not is left behind for a new one,
   * and the run says so: what comes next needs one that answers.
   */
  async clear(): Promise<void> {
    this.#given = false
    for (const [index, page] of this.context.pages().entries()) {
      const address = page.url()
      if (await inTime(index > 0 ? shut(page) : this.#renew(page))) continue
      process.stderr.write(`a page did not close, so there is a new browser: ${address}\n`)
      await this.#leave()
      await this.start()
      return
    }
  }

  /** Leaves Slipway's page for a file of the same origin: for any other, Chromium starts a process. */
  async #renew(page: Page): Promise<void> {
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    if (isOwn(page.url())) {
      await page.evaluate(() => sessionStorage.clear())
      await page.goto(new URL('/icon.svg', page.url()).href)
    }
    await page.setViewportSize(this.#viewport)
    await page.emulateMedia({ colorScheme: null, reducedMotion: 'reduce' })
  }

  async close(): Promise<void> {
    if (this.#context) await this.#leave()
    for (const profile of this.#profiles.splice(0)) rmSync(profile, { recursive: true, force: true, maxRetries: 3 })
  }

  async #leave(): Promise<void> {
    const context = this.context
    this.#context = undefined
    this.#loggedIn = ''
    this.#given = false
    if (!(await inTime(context.close()))) process.stderr.write('a browser did not close\n')
  }
}

/**
 * Loads an app's page again that lost a part of itself because another session started or ended: its network is an
 * address that this machine got or lost, at which Chromium drops what it was about to ask for.
 */
function loadAgain(request: Request): void {
  if (request.failure()?.errorText !== 'net::ERR_NETWORK_CHANGED') return
  if (isOwn(request.url()) || !['script', 'stylesheet'].includes(request.resourceType())) return
  process.stderr.write(`loaded again, because the addresses of this machine changed: ${request.frame().url()}\n`)
  void request.frame().page().reload()
}

/**
 * Closes a page once it has loaded: Chromium forgets a wish to close that comes while a page goes from one process to
 * another.
 */
export async function shut(page: Page): Promise<void> {
  // one that never loads is closed as it is
  await page.waitForLoadState('load', { timeout: 30_000 }).catch(() => undefined)
  await page.close()
}

/** Whether something is done before somebody who waits would lose patience. */
async function inTime(done: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((answer) => {
    timer = setTimeout(answer, 60_000, false)
  })
  try {
    return await Promise.race([done.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Keeps what a page looks like beside the tests, in results/, for whoever looks: SLIPWAY_PICTURES=1. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SLIPWAY_PICTURES) await shoot(page, name)
}

/** Takes a picture in any case. */
export async function shoot(page: Page, name: string, timeout?: number): Promise<void> {
  await page.screenshot({ path: join(results, `${name}.png`), animations: 'disabled', timeout })
}

/** Presses what saves a file, and returns the file. */
export async function download(page: Page, press: () => Promise<void>): Promise<{ name: string; text: string }> {
  const [file] = await Promise.all([page.waitForEvent('download'), press()])
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') }
}
