import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, it } from 'vitest'
import type { Session, Settings } from '@/api/types.gen'
import { Browser } from './browser'
import { stage } from './hooks'
import { askFor, launch, row } from './launcherPage'
import { eventually, Program } from './program'
import { ShellPage, Wire } from './shellPage'

// The pictures of the documentation, made of the real program over the simulated engine.
const folder = join(import.meta.dirname, '../../build/docs/pictures')
const program = new Program('sim')
const browser = new Browser()
let train: Session
let queued: Session

const gib = 1024 ** 3

stage(program, browser, {
  prepare: async () => {
    mkdirSync(folder, { recursive: true })
    await program.call('POST', '/folders', { name: 'datasets' })
    const job = (name: string, image: string, accelerator: string, more: object = {}) =>
      program.launch({ name, image, accelerator, resources: { cpu: 1, memory: gib }, ...more } as Partial<
        Session['spec']
      >)
    const done = await job('prepare-data', 'python:3.12', '', { type: 'batch', command: 'python prepare.py' })
    await program.status(done.id, 'TERMINATED')
    await job('notebook-ada', 'python:3.12', '0.5')
    train = await job('bert-finetune', 'pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime', '1')
    queued = await job('ablation-7', 'pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime', '2', {
      type: 'batch',
      command: 'python train.py --seed 7',
    })
    await program.status(train.id, 'RUNNING')
  },
})

/** Writes what a page looks like as WebP, which the browser itself encodes. */
async function keep(page: Page, name: string): Promise<void> {
  const png = (await page.screenshot({ animations: 'disabled' })).toString('base64')
  const blank = await browser.context.newPage()
  const webp = await blank.evaluate(async (data) => {
    const image = new Image()
    image.src = `data:image/png;base64,${data}`
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d')?.drawImage(image, 0, 0)
    return canvas.toDataURL('image/webp', 0.85)
  }, png)
  await blank.close()
  writeFileSync(join(folder, `${name}.webp`), Buffer.from(webp.slice(webp.indexOf(',') + 1), 'base64'))
}

/** A moving picture, of which each frame is shown for a time in milliseconds. */
class Film {
  private readonly dir = mkdtempSync(join(tmpdir(), 'slipway-film-'))
  private readonly options: string[] = []

  async frame(page: Page, shown: number): Promise<void> {
    const path = join(this.dir, `${this.options.length}.png`)
    await page.screenshot({ animations: 'disabled', path })
    this.options.push('-d', String(shown), path)
  }

  keep(name: string): void {
    execFileSync('img2webp', ['-loop', '0', '-lossy', '-q', '60', ...this.options, '-o', join(folder, `${name}.webp`)])
    rmSync(this.dir, { recursive: true })
  }
}

/** Notifications take room of what is to be seen. */
async function dismiss(page: Page): Promise<void> {
  for (const button of await page.getByRole('button', { name: /^Dismiss/ }).all())
    await button.click().catch(() => undefined)
}

async function theme(value: string): Promise<void> {
  await program.call('PUT', '/settings', { ...(await program.call<Settings>('GET', '/settings')), theme: value })
}

describe('the pictures of the documentation', () => {
  it('are made', async () => {
    await theme('light')
    const page = await browser.page(program)
    await row(page, 'bert-finetune').getByText('Running').waitFor()
    await eventually(
      'the charts have something to show',
      async () => (await program.call<unknown[]>('GET', `/sessions/${train.id}/usage`)).length > 5,
      60_000,
    )
    await dismiss(page)
    await keep(page, 'sessions')
    await page.goto(`${program.url}/launcher?step=environment`)
    await page.getByRole('heading', { name: 'Launch a session' }).waitFor()
    await page.locator('.ant-skeleton:visible').first().waitFor({ state: 'detached' })
    await keep(page, 'launcher')
    await page.goto(`${program.url}/sessions/${train.id}`)
    await page.getByRole('dialog').locator('canvas').first().waitFor()
    await dismiss(page)
    await keep(page, 'session')
    await page.goto(`${program.url}/gpus`)
    await page.getByText('bert-finetune').first().waitFor()
    await keep(page, 'gpus')
    await theme('dark')
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${train.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('echo "step 1200  loss 0.412  lr 3e-05"')
    await keep(page, 'terminal')
    await page.goto(`${program.url}/sessions`)
    await row(page, 'bert-finetune').waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('bert')
    await page.getByRole('option').first().waitFor()
    await keep(page, 'palette')
  })

  it('have one that moves', async () => {
    await theme('light')
    const page = await browser.page(program)
    const film = new Film()
    await program.call('POST', `/sessions/${queued.id}/terminate`, { forced: true })
    await row(page, 'bert-finetune').getByText('Running').waitFor()
    await row(page, 'ablation-7').waitFor({ state: 'detached' })
    await dismiss(page)
    await film.frame(page, 1800)
    await page.goto(`${program.url}/launcher?step=environment`)
    await page.getByRole('heading', { name: 'Launch a session' }).waitFor()
    await page.getByText('Starts at once').waitFor()
    await film.frame(page, 1400)
    await askFor(page, 'Share')
    await page.getByRole('radiogroup', { name: 'Type of accelerator' }).scrollIntoViewIfNeeded()
    await film.frame(page, 1400)
    await page.getByRole('button', { name: 'Skip to review' }).click()
    await page.getByRole('heading', { name: 'Command line' }).waitFor()
    await film.frame(page, 1600)
    await launch(page)
    await page.locator('[data-status="RUNNING"]').nth(2).waitFor()
    await film.frame(page, 1200)
    const live = await program.call<Session[]>('GET', '/sessions?state=live')
    const newest = live.find(({ name }) => name !== 'bert-finetune' && name !== 'notebook-ada')
    await page.goto(`${program.url}/sessions/${newest?.id}/terminal`)
    const shell = new ShellPage(page, new Wire(page))
    await shell.ready()
    await film.frame(page, 800)
    await shell.type('nvidia-smi -L')
    await shell.saw('UUID')
    await film.frame(page, 1800)
    await page.goto(`${program.url}/gpus`)
    await page.getByText('bert-finetune').first().waitFor()
    await film.frame(page, 2400)
    film.keep('tour')
  })
})
