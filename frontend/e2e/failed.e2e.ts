import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Session, Usage } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { makeFolder } from './foldersPage'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// What a session leaves when it fails: the end of its log, its load, and what it did otherwise than the last success.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const MIB = 1024 ** 2
const words = join(program.disk, 'scratch', 'words')
const batch = (command: string, memory: number) =>
  program.launch({
    name: 'nightly',
    type: 'batch',
    image: 'python:3.12',
    command,
    resources: { cpu: 1, memory: memory * MIB },
    mounts: [{ folder: 'words' }],
  })
const wait = (word: string) => `until [ -e /home/work/words/${word} ]; do sleep 0.2; done`

/** Lets a session go on that waits for a word, once it was measured. A command in it might be ended by its end. */
async function letGo({ id }: Session, word: string): Promise<void> {
  await program.status(id, 'RUNNING')
  const samples = () => program.call<Usage[]>('GET', `/sessions/${id}/usage`)
  await eventually('it was measured', async () => (await samples()).length > 0)
  writeFileSync(join(words, word), '')
}

describe('a session that failed', () => {
  it('shows the last lines of its log, its charts, and what differed from the last success', async () => {
    mkdirSync(words)
    await makeFolder(program, 'words', '/scratch/words')
    const good = await batch(wait('first'), 512)
    await letGo(good, 'first')
    await program.status(good.id, 'TERMINATED')
    const fails = `for i in $(seq 30); do echo line $i; done; ${wait('second')}; echo out of luck; exit 3`
    const bad = await batch(fails, 256)
    await letGo(bad, 'second')
    const page = await browser.page(program, `/sessions/${bad.id}`)
    await page.getByText('The startup command ended with exit code 3.').waitFor()
    const log = page.getByRole('region', { name: 'The last 20 lines of the log' })
    await log.getByText('out of luck').waitFor()
    expect(await log.innerText()).toContain('line 12\n')
    expect(await log.innerText()).not.toContain('line 11\n')
    await page.getByRole('heading', { name: 'Usage before it ended' }).waitFor()
    await page.getByRole('img', { name: 'Memory', exact: true }).waitFor()
    await picture(page, 'failed-banner')

    await page.getByRole('button', { name: 'Compare with the last success' }).click()
    const dialog = page.getByRole('dialog', { name: 'Compare with the last success' })
    const line = (name: string) => dialog.getByRole('row', { name: new RegExp(`^${name}`) })
    const cells = (name: string) => line(name).getByRole('cell').allInnerTexts()
    await dialog.getByText('512 MiB').waitFor()
    expect(await cells('Memory allocated')).toEqual(['256 MiB', '512 MiB'])
    expect(await cells('Result')).toEqual([expect.stringContaining('Failure'), expect.stringContaining('Success')])
    expect(await cells('resources.memory')).toEqual(['256m', '512m'])
    const [mine, its] = await cells('Memory peak')
    expect([mine, its]).toEqual([expect.stringMatching(/MiB$/), expect.stringMatching(/MiB$/)])
    await picture(page, 'failed-compared')

    await program.kill()
    await program.start()
    await page.goto(`${program.url}/sessions/${bad.id}`)
    await page.getByRole('img', { name: 'Memory', exact: true }).waitFor()
    const told = await program.cli('compare', bad.id)
    expect(told).toMatch(/memory allocated +256 MiB +512 MiB/)
    await eventually('nothing succeeded before the first', async () =>
      (await program.cli('compare', good.id)).includes('No session like it'),
    )
  })
})
