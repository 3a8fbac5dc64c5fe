import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Image, Operation, Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { makeFolder } from './foldersPage'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram } from './program'

// A project in a folder becomes a session: what decides, the build, the launch.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

/** Makes a folder with the files of a project, and opens its dialog. */
async function opened(name: string, files: Record<string, string>) {
  const dir = join(program.disk, 'scratch', name)
  mkdirSync(dir)
  for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, file), content)
  await makeFolder(program, name, `/scratch/${name}`)
  const page = await browser.page(program, '/folders')
  await page.getByRole('button', { name: `Launch as a project: ${name}` }).click()
  return { page, dialog: page.getByRole('dialog', { name: `Project ${name}` }) }
}

const built = async () =>
  (await program.call<Image[]>('GET', '/images')).flatMap((i) => i.refs).filter((ref) => ref.includes(':project-'))

describe('a project', () => {
  it('is built of the file that decides, and launched with its folder', async () => {
    const { page, dialog } = await opened('vision', {
      'requirements.txt': 'torch\n',
      'apt.txt': 'tree\n',
      'runtime.txt': 'python-3.11\n',
      'train.py': '',
    })
    await dialog.getByText('Not built yet').waitFor()
    await dialog.getByText('Choose one that has Python 3.11.').waitFor()
    await dialog.getByText('-r requirements.txt').waitFor()
    await picture(page, 'project-found')
    expect(await built()).toHaveLength(0)
    await dialog.getByRole('button', { name: 'Build the image' }).click()
    await picture(page, 'project-builds')
    await dialog.getByRole('button', { name: 'Launch a session' }).waitFor()
    const work = (await program.call<Operation[]>('GET', '/operations')).find((o) => o.kind === 'image-build')
    expect(work?.steps.map((s) => s.state)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(work?.log).toContain('simulated: RUN apt-get')
    await dialog.getByText('On the machine').waitFor()
    await picture(page, 'project-built')
    expect(await built()).toHaveLength(1)
    await dialog.getByRole('button', { name: 'Launch a session' }).click()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await page.waitForURL(/\/sessions/)
    const session = (await program.call<Session[]>('GET', '/sessions')).find((s) => s.image.includes(':project-'))
    expect(session?.folders?.map((f) => f.name)).toContain('vision')
    await row(page, session?.name ?? '').waitFor()
  })

  it('of a devcontainer.json shows what it runs in the session, whose output is in the log', async () => {
    const { page, dialog } = await opened('contained', {
      '.devcontainer.json': JSON.stringify({ image: 'python:3.12', postCreateCommand: 'echo contained in $(pwd)' }),
    })
    await dialog.getByText("sh -c 'echo contained in $(pwd)'", { exact: false }).waitFor()
    await picture(page, 'project-setup')
    await dialog.getByRole('button', { name: 'Launch a session' }).click()
    await page.getByRole('heading', { name: 'Command line' }).waitFor()
    await page.getByRole('region', { name: 'Environment & resources' }).getByText('cd /home/work/contained').waitFor()
    await picture(page, 'launcher-setup')
    await page.getByRole('button', { name: 'Edit Environment & resources' }).click()
    const field = page.getByLabel('Setup script')
    await field.fill(`${await field.inputValue()}exit 4`)
    await picture(page, 'launcher-setup-field')
    await page.getByRole('button', { name: 'Skip to review' }).click()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await page.waitForURL(/\/sessions/)
    const [session] = await program.sessions()
    await page.goto(`${program.url}/sessions/${session?.id}?view=logs`)
    await page.getByRole('log').getByText('contained in /home/work/contained').first().waitFor()
    await page.goto(`${program.url}/sessions/${session?.id}`)
    await page.getByText('The setup failed: sh ended with code 4').first().waitFor()
    await picture(page, 'session-setup')
  })

  it('of a devcontainer.json is where that says, with the mounts that it asks for', async () => {
    const mounts = ['type=bind,source=${localWorkspaceFolder},target=/srv/placed,readonly', 'type=tmpfs,target=/fast']
    const { page, dialog } = await opened('placed', {
      '.devcontainer.json': JSON.stringify({ image: 'python:3.12', workspaceFolder: '/workspaces/placed', mounts }),
    })
    await dialog.getByText('/srv/placed', { exact: true }).waitFor()
    await dialog.getByText('your folders in place of volumes').waitFor()
    await picture(page, 'project-mounts')
    await dialog.getByRole('button', { name: 'Launch a session' }).click()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await page.waitForURL(/\/sessions/)
    const launched = (await program.sessions()).find((s) => s.folders?.some((f) => f.name === 'placed'))
    const placed = launched?.folders?.filter((f) => f.name === 'placed').map((f) => [f.target, f.readOnly ?? false])
    expect(placed).toEqual([
      ['/workspaces/placed', false],
      ['/srv/placed', true],
    ])
  })

  it('is not built while it cannot be understood, and says why', async () => {
    const { page, dialog } = await opened('broken', { '.devcontainer.json': '{"image": ' })
    await dialog.getByText('.devcontainer.json cannot be understood').waitFor()
    expect(await dialog.getByRole('button', { name: 'Build the image' }).isDisabled()).toBe(true)
    await picture(page, 'project-broken')
  })

  it('without a file uses an environment as it is', async () => {
    const { page, dialog } = await opened('plain', { 'main.py': '' })
    await dialog.getByText('No file says what the project needs').waitFor()
    expect(await dialog.getByRole('button', { name: 'Launch a session' }).isEnabled()).toBe(true)
    await picture(page, 'project-plain')
  })
})
