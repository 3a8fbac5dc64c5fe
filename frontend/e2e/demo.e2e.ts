import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// No Docker, no GPU, no other computer: the whole launcher over two simulated machines.
const program = new DemoProgram('lab', { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
const browser = new Browser()

stage(program, browser)

const lab = async () => (await program.agents()).find((a) => a.name === 'lab')

describe('the demo', () => {
  it('is marked wherever one looks', async () => {
    const page = await browser.page(program)
    for (const section of ['sessions', 'launcher', 'folders', 'gpus', 'usage', 'agents', 'images', 'settings']) {
      await page.goto(`${program.url}/${section}`)
      await page.getByRole('button', { name: 'Demo', exact: true }).waitFor()
      await eventually('the title says so', async () => (await page.title()).includes('Demo'))
    }
    await page.getByRole('button', { name: 'Demo', exact: true }).click()
    await page.getByText('Nothing here is real').waitFor()
    await page.getByText('Everyday work on both machines').waitFor()
    expect(await program.cli('ps')).toContain('llm-pretrain')
  })

  it('marks a terminal in a window of its own', async () => {
    const notebook = (await program.sessions()).find((s) => s.name === 'notebook')
    await program.status(notebook?.id ?? '', 'RUNNING')
    const page = await browser.page(program, `/sessions/${notebook?.id ?? ''}/terminal?window=1`)
    await page.getByText('Demo', { exact: true }).waitFor()
  })

  it('cuts the tunnel when the lid is closed, and everything resumes', async () => {
    const page = await browser.page(program)
    await row(page, 'llm-pretrain').getByText('Running').waitFor()
    await page.getByRole('button', { name: 'Close the lid' }).click()
    await page.getByText('The lid is closed.').waitFor()
    await eventually('the lab is not reached', async () => (await lab())?.connection.state !== 'connected')
    await row(page, 'llm-pretrain').waitFor() // what was known of it stays
    await picture(page, 'demo-lid-closed')
    await page.getByRole('status').getByRole('button', { name: 'Open the lid' }).click()
    await page.getByText('The lid is closed.').waitFor({ state: 'hidden' })
    await eventually('the lab is reached again', async () => (await lab())?.connection.state === 'connected')
    await row(page, 'llm-pretrain').getByText('Running').waitFor()
  })
})
