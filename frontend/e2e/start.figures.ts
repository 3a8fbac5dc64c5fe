import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type { Resources } from '@/api/types.gen'
import { Browser } from './browser'
import { tell } from './figures'
import { stage } from './hooks'
import { printed } from './notebookPage'
import { eventually, freePort, notebookImage, Program } from './program'

// What `make bench` measures of a quick start: from the click on an empty page to the output of a cell, and the same
// with `docker run` of the same image with the same limits, Jupyter's own start, and the same browser. They take turns.
const rounds = Number(process.env.SLIPWAY_ROUNDS ?? 5)

const program = new Program('docker')
const browser = new Browser()
stage(program, browser, { afresh: true })

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

const docker = (...args: string[]) =>
  execFileSync('docker', args, { env: { ...process.env, DOCKER_HOST: process.env.SLIPWAY_TEST_DOCKER } })
    .toString()
    .trim()

interface Round {
  /** Milliseconds until the page of Jupyter began to load. */
  ready: number
  /** Milliseconds until the output of a cell was there. */
  cell: number
  clicks: number
}

let clicks = 0
const click = (target: Locator) => {
  clicks++
  return target.click()
}

/** Clicks into the first cell of a notebook, writes a sum, runs it, and waits for its output. */
async function runCell(sheet: Page): Promise<void> {
  await sheet.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor()
  await click(sheet.locator('.code_cell .CodeMirror').first())
  await sheet.keyboard.insertText('print(6 * 7)')
  await sheet.keyboard.press('Shift+Enter')
  await sheet.locator('.code_cell').first().locator('.output_stdout pre').getByText('42', { exact: true }).waitFor()
}

interface Limits {
  cpu: number
  memory: number
  shm: number
}

async function slipway(): Promise<Round & { limits: Limits }> {
  const page = await browser.page(program)
  const offer = page.locator('[data-offer="new"]')
  await offer.getByText('Starts at once').waitFor()
  clicks = 0
  const began = performance.now()
  const [sheet] = await Promise.all([browser.context.waitForEvent('page'), click(offer.getByRole('button'))])
  await sheet.waitForURL(/\/notebooks\/Untitled\.ipynb/, { waitUntil: 'commit' })
  const ready = performance.now() - began
  await runCell(sheet)
  const cell = performance.now() - began
  const clicked = clicks
  expect(await printed(sheet)).toBe('42')
  const [session] = await program.sessions()
  const resources: Resources = session?.spec.resources ?? {}
  await browser.clear()
  await program.endAll()
  const limits = { cpu: resources.cpu ?? 1, memory: Number(resources.memory), shm: Number(resources.shm) }
  return { ready, cell, clicks: clicked, limits }
}

/** Leads a port of the loopback to one of a container, as Docker's own proxy does where it is on. */
async function relay(host: string, port: number): Promise<{ server: Server; port: number }> {
  const own = await freePort()
  const server = createServer((near) => {
    const far = connect(port, host)
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).pipe(near)
  })
  server.listen(own, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: own }
}

/** An empty notebook, as Slipway makes it. */
const empty = {
  type: 'notebook',
  content: {
    cells: [{ cell_type: 'code', execution_count: null, metadata: {}, outputs: [], source: '' }],
    metadata: { kernelspec: { display_name: 'Python 3', language: 'python', name: 'python3' } },
    nbformat: 4,
    nbformat_minor: 4,
  },
}

async function dockerRun({ cpu, memory, shm }: Limits): Promise<Round> {
  const jupyter = ['jupyter-notebook', '--no-browser', '--ip=0.0.0.0', '--port=8888', '--allow-root']
  const began = performance.now()
  const id = docker(
    ...['run', '-d', '--rm', `--cpuset-cpus=0-${cpu - 1}`, `--cpus=${cpu}`, `--memory=${memory}`],
    ...[`--memory-swap=${memory}`, `--shm-size=${shm}`, '--workdir=/tmp', notebookImage, ...jupyter],
    '--NotebookApp.token=bench',
  )
  let server: Server | undefined
  try {
    const address = docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', id)
    const door = await relay(address, 8888)
    server = door.server
    const url = `http://127.0.0.1:${door.port}`
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(url + path, { ...init, headers: { authorization: 'token bench', 'content-type': 'application/json' } })
    for (;;) {
      const answer = await ask('/api').catch(() => undefined)
      if (answer?.ok) break
      await new Promise((done) => setTimeout(done, 20))
    }
    expect((await ask('/api/contents/Untitled.ipynb', { method: 'PUT', body: JSON.stringify(empty) })).ok).toBe(true)
    const sheet = await browser.context.newPage()
    await sheet.goto(`${url}/notebooks/Untitled.ipynb?token=bench`, { waitUntil: 'commit' })
    const ready = performance.now() - began
    await runCell(sheet)
    const cell = performance.now() - began
    await browser.clear()
    return { ready, cell, clicks: 0 }
  } finally {
    server?.close()
    docker('rm', '-f', id)
  }
}

it('a cell runs soon after the click', async () => {
  await eventually('the machine is there', async () => (await program.machines()).length === 1)
  const ours: Round[] = []
  const theirs: Round[] = []
  for (let round = 0; round <= rounds; round++) {
    const { limits, ...own } = await slipway()
    const other = await dockerRun(limits)
    if (round === 0) continue // warms the caches of both
    ours.push(own)
    theirs.push(other)
  }
  for (const [name, all] of Object.entries({ '': ours, 'docker-': theirs })) {
    tell(median(all.map(({ ready }) => ready)), `${name}ready-ms`)
    tell(median(all.map(({ cell }) => cell)), `${name}cell-ms`)
    tell(Math.max(...all.map(({ cell }) => cell)), `${name}worst-cell-ms`)
  }
  tell(Math.max(...ours.map(({ clicks }) => clicks)), 'clicks')
})
