import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { Cluster } from './cluster'
import { stage } from './hooks'
import { escape } from './keys'
import { choose, enter, launch, row } from './launcherPage'
import { execute, newNotebook, openNotebooks, printed } from './notebookPage'
import { eventually, notebookImage, Program } from './program'
import { numbers, ShellPage, upTo, Wire } from './shellPage'

// Where one machine is outgrown: from this computer through the real sshd of a login node to a job of Slurm. Each test
// goes on where the one before left it.
const cluster = new Cluster()
const program = new Program('docker', cluster.env)
const browser = new Browser()
let session: Session
let limited: Session // whose time limit is short

beforeAll(() => cluster.open())
afterAll(() => cluster.close())
stage(program, browser)

const MEMORY = 700

/** Reads the limit of memory of its own control group, of either version, which may be set above it. */
const notebook = `
import os
from pathlib import Path

def limits():
    for line in Path('/proc/self/cgroup').read_text().splitlines():
        number, controllers, path = line.split(':', 2)
        if controllers not in ('', 'memory'):
            continue
        at = Path('/sys/fs/cgroup', controllers)
        for name in ('memory.max', 'memory.limit_in_bytes'):
            for folder in (at, *(at / above.relative_to('/') for above in (Path(path), *Path(path).parents))):
                if (folder / name).exists():
                    yield (folder / name).read_text().strip()

memory = min(int(limit) for limit in limits() if limit != 'max')
print(f"node={os.environ['SLIPWAY_NODE']} seen={len(os.sched_getaffinity(0))} memory={memory}")
`

/** What a page looks like on a small and a large screen, in light and dark. */
async function pictures(page: Page, name: string): Promise<void> {
  for (const [width, height] of [
    [1280, 800],
    [1920, 1080],
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' })
      await picture(page, `cluster-${name}-${width}-${colorScheme}`)
    }
  }
}

describe('a cluster with Slurm', () => {
  it('is added by its login node, and gets an image', async () => {
    const page = await browser.page(program, '/agents?add=1')
    await page.getByRole('textbox', { name: 'Address' }).fill('ssh://cluster')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Show cluster' }).waitFor()
    await picture(page, 'cluster-added')
    await page.getByRole('button', { name: 'Show cluster' }).click()
    await page.getByRole('article', { name: 'cluster' }).getByText('Connected').waitFor()
    await picture(page, 'cluster-detail')
    await program.cli('image', 'send', notebookImage, '--to', 'cluster')
  })

  it('runs a session as a job', async () => {
    const page = await browser.page(program, '/launcher')
    await choose(page, 'Machine', 'cluster')
    await enter(page, { name: 'in-a-job', image: notebookImage, cpu: 1, memory: MEMORY })
    await page.getByRole('heading', { name: 'Job script' }).scrollIntoViewIfNeeded()
    await pictures(page, 'script')
    await launch(page)
    await row(page, 'in-a-job').getByText('Running').waitFor()
    await picture(page, 'cluster-list')
    const found = (await program.sessions()).find((s) => s.name === 'in-a-job')
    if (!found) throw new Error('it is not listed')
    session = found
    expect(await cluster.on('login', 'squeue --noheader --format="%j %T %N"')).toBe(
      `slipway-${session.id}-1 RUNNING ${session.kernels[0]?.node}`,
    )
    await row(page, 'in-a-job').getByRole('link', { name: 'in-a-job' }).click()
    await page.getByRole('dialog').getByText('Running').first().waitFor()
    await pictures(page, 'drawer')
    limited = await program.launch({ name: 'limited', agent: 'cluster', image: notebookImage, slurm: { time: '2m' } })
  })

  it('counts down to the time limit of another', async () => {
    const page = await browser.page(program, `/sessions/${limited.id}`)
    await page.getByRole('button', { name: 'Show recipe' }).click()
    const recipe = page.getByRole('dialog').filter({ hasText: 'slurm:' })
    await recipe.waitFor()
    await pictures(page, 'recipe')
    await escape(page)
    await recipe.waitFor({ state: 'hidden' })
    await page.getByRole('timer').first().waitFor()
    await pictures(page, 'limit')
  })

  it('opens Jupyter on its node, where a cell finds what Slurm gave the job', async () => {
    const page = await browser.page(program, `/sessions?apps=${session.id}`)
    const tree = await openNotebooks(browser.context, page)
    const sheet = await newNotebook(browser.context, tree)
    await execute(sheet, notebook)
    await eventually('the cell prints', async () => (await printed(sheet)) !== '')
    await picture(sheet, 'cluster-notebook')
    expect(await printed(sheet)).toBe(`node=${session.kernels[0]?.node} seen=1 memory=${MEMORY * 1024 ** 2}`)
  })

  it('has a terminal', async () => {
    const page = await browser.page(program)
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.run('ls; echo "sum $((40 + 2))"')
    await shell.saw('Untitled.ipynb')
    await shell.saw('sum 42')
    await picture(page, 'cluster-terminal')
  })

  it('goes on through a cut of the tunnel, and a kill of its agent and of Slipway', async () => {
    const page = await browser.page(program)
    const wire = new Wire(page)
    await page.goto(`${program.url}/sessions/${session.id}/terminal`)
    const shell = new ShellPage(page, wire)
    await shell.ready()
    await shell.type(
      'stty -echo; i=0; until [ -e stop ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done; echo "all $i"',
    )
    const jobs = () => cluster.on('login', 'squeue --noheader --format="%A %j"')
    const before = await jobs()
    for (const harm of [
      () => cluster.cut(program.pid),
      () => cluster.on('login', 'pkill -KILL -u ada -x slipway'),
      () => program.kill().then(() => program.start()),
    ]) {
      const { length } = await shell.output()
      await eventually('output comes', async () => (await shell.output()).length > length + 200)
      await harm()
    }
    await eventually('a file tells it to stop', () =>
      program.cli('exec', session.id, '--', 'touch', 'stop').then(
        () => true,
        () => false,
      ),
    )
    await shell.saw('all ')
    const output = (await shell.output()).toString()
    expect(numbers(output, 'line')).toEqual(upTo(numbers(output, 'all')[0] ?? 0))
    expect(wire.gaps).toBe(0)
    expect(await jobs()).toBe(before)
  })

  it('is ended by Slurm at its time limit', async () => {
    expect((await program.status(limited.id, 'TERMINATED')).reason).toBe('task-timeout')
  })

  it('leaves nothing when it is terminated', async () => {
    const page = await browser.page(program)
    await row(page, 'in-a-job').getByRole('button', { name: 'Terminate' }).click()
    const question = page.getByRole('dialog', { name: 'Terminate in-a-job?' })
    await question.getByRole('button', { name: 'Terminate' }).click()
    const { reason } = await program.status(session.id, 'TERMINATED')
    expect(reason).toBe('user-requested')
    const node = session.kernels[0]?.node as 'n1' | 'n2'
    await eventually('the job has ended', async () => (await cluster.on('login', 'squeue --noheader')) === '')
    await eventually('its processes have', async () => (await cluster.processes(node)).length === 0)
    expect(await cluster.on('login', 'ls ~/.local/share/slipway/slurm/runs')).toBe('')
    expect(await cluster.on(node, 'ls /tmp/slipway-*/runs')).toBe('')
  })

  it('is left as it was found when it is removed', async () => {
    await program.cli('agent', 'rm', 'cluster', '--uninstall', '--yes')
    await eventually(
      'its processes have ended',
      async () => (await cluster.on('login', 'pgrep -u ada -x slipway || true')) === '',
    )
    expect(await cluster.on('login', 'ls ~/.local/share')).toBe('')
  })
})
