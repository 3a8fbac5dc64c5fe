import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { makeMachine } from '@/api/testing/session'
import type { Operation } from '@/api/types.gen'
import { folderNameOf } from './opening'
import { folder, found, known, press, rows, show } from './testing/projects'

describe('remembered projects', () => {
  it('are listed with pinned ones first, and say where they are or why they cannot be opened', async () => {
    show(
      [
        known('a', { name: 'gone', folder: 'x' }),
        known('b', { name: 'far', agent: 'old' }),
        known('c', { name: 'paper/notebooks', path: 'notebooks', pinned: true }),
      ],
      [folder('f', 'local', { path: '/home/ada/paper' })],
    )
    const [first, second, third] = await rows()
    expect(first).toHaveTextContent('paper/notebookslocal · /home/ada/paper/notebooks')
    expect(second).toHaveTextContent('goneIts folder was deleted or is in the trash.')
    expect(third).toHaveTextContent('farThe machine old was removed.')
    expect(screen.getByRole('button', { name: 'far' })).toBeDisabled()
    expect(screen.queryByRole('button', { name: 'Open far on another machine' })).toBeNull()
  })

  it('are pinned and forgotten', async () => {
    const { sent } = show([known('a')], [folder('f', 'local')], {
      'PATCH /api/v1/projects/a': known('a', { pinned: true }),
      'DELETE /api/v1/projects/a': null,
    })
    await rows()
    await press('Pin paper')
    await press('Remove paper from the list')
    await waitFor(() => expect(sent.filter((s) => s.path === '/api/v1/projects/a')).toHaveLength(2))
    expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ pinned: true })
  })

  it('are opened with what was chosen, and built again where they have changed', async () => {
    const choice = { path: 'notebooks', file: 'requirements.txt', environment: 'lab:1' }
    const { bodies } = show([known('a', { ...choice, image: 'old:1' })], [folder('f', 'local')])
    await rows()
    await press('paper')
    await screen.findByText('The project has changed since its image was built.')
    expect(screen.getByRole('button', { name: 'Rebuild the image' })).toBeEnabled()
    expect(bodies('folders/f/project')).toEqual([choice])
    expect(bodies('folders/f/project/open')).toEqual([{ ...choice, address: '' }])
  })

  it('say nothing of a change where the image is as it was', async () => {
    show([known('a', { image: 'new:1' })], [folder('f', 'local')])
    await rows()
    await press('paper')
    await screen.findByRole('button', { name: 'Build the image' })
    expect(screen.queryByText(/has changed/)).toBeNull()
  })

  it('say which secrets a build reads and which are missing, and let it read only these', async () => {
    const { bodies } = show([known('a')], [folder('f', 'local')], {
      'POST /api/v1/folders/f/project': { ...found, secrets: ['PIP_TOKEN', 'HF_TOKEN'] },
      'GET /api/v1/secrets': [
        { kind: 'variable', name: 'PIP_TOKEN', kept: 'file', updatedAt: '2026-01-01T00:00:00Z' },
        { kind: 'registry', name: 'HF_TOKEN', kept: 'file', updatedAt: '2026-01-01T00:00:00Z' },
      ],
    })
    await rows()
    await press('paper')
    const stored = await screen.findByText(/Stored\. The build can read it\./)
    expect(stored).toHaveTextContent('PIP_TOKEN')
    expect(screen.getByText(/No secret named HF_TOKEN is stored\. .*slipway secret set HF_TOKEN/)).toBeVisible()
    await press('Build the image')
    await waitFor(() =>
      expect(bodies('folders/f/project/build')).toMatchObject([{ secrets: ['PIP_TOKEN', 'HF_TOKEN'] }]),
    )
  })

  it('show the folders that they ask for, and are launched with these', async () => {
    const { onLaunch } = show([known('a')], [folder('f', 'local')], {
      'POST /api/v1/folders/f/project': {
        ...found,
        present: true,
        mounts: [
          { folder: 'f', name: 'paper', path: 'code', target: '/src' },
          { folder: 'm', name: 'models', target: '/models', readOnly: true },
        ],
      },
    })
    await rows()
    await press('paper')
    await screen.findByText('The project asks for folders of yours besides its own. Its code can use them.')
    const shown = screen.getAllByRole('listitem').map((one) => one.textContent)
    expect(shown).toEqual(expect.arrayContaining(['paper/code → /src ', 'models → /models (Read-only)']))
    await press('Launch a session')
    await waitFor(() => expect(onLaunch).toHaveBeenCalled())
    expect(onLaunch).toHaveBeenCalledWith(
      expect.objectContaining({
        mounts: [
          { folder: 'f', path: 'code', target: '/src', readOnly: false },
          { folder: 'm', target: '/models', readOnly: true },
        ],
      }),
    )
  })

  it('are remembered with the image that a session is launched with, and ask for what they need', async () => {
    const { bodies, onLaunch } = show([known('a')], [folder('f', 'local')], {
      'POST /api/v1/folders/f/project': { ...found, present: true, accelerator: { memory: 8 } },
    })
    await rows()
    await press('paper')
    await press('Launch a session')
    const asked = { image: 'new:1', accelerator: { memory: 8 } }
    await waitFor(() => expect(onLaunch).toHaveBeenCalledWith(expect.objectContaining(asked)))
    expect(bodies('folders/f/project/open').at(-1)).toMatchObject({ image: 'new:1' })
  })

  it('take over a generated Dockerfile', async () => {
    const answer = (value: unknown) => new Response(JSON.stringify(value), { status: 200 })
    const pieces: (string | undefined)[] = []
    class Sending {
      upload = {}
      status = 200
      responseText = '{"offset":10}'
      onload = () => {}
      open = (_: string, address: string) => pieces.push(address.split(/[?&]/).find((one) => one.startsWith('path=')))
      send = () => this.onload()
    }
    vi.stubGlobal('XMLHttpRequest', Sending)
    let finished: unknown
    const { bodies } = show([known('a', { path: 'notebooks' })], [folder('f', 'local')], {
      'POST /api/v1/folders/f/project': (body: unknown) =>
        answer(
          (body as { file: string }).file === 'Dockerfile'
            ? { ...found, kind: 'dockerfile', file: 'Dockerfile', generated: false }
            : { ...found, files: ['requirements.txt'] },
        ),
      'POST /api/v1/folders/f/files/upload': (body: unknown) => {
        finished = body
        return answer({})
      },
    })
    await rows()
    await press('paper')
    // It is shown, because it is about to be built.
    await screen.findByRole('button', { name: 'Hide the Dockerfile' })
    await press('Save in the project')
    await screen.findByText('The project has its own Dockerfile now.')
    expect(pieces).toEqual(['path=notebooks%2FDockerfile'])
    expect(finished).toEqual({ size: 10, conflict: 'fail' })
    await screen.findByText('A Dockerfile of the project.')
    expect(bodies('folders/f/project').at(-1)).toMatchObject({ file: 'Dockerfile' })
    expect(screen.queryByRole('button', { name: 'Save in the project' })).not.toBeInTheDocument()
  })

  it('are opened by an address, which says so', async () => {
    const { onReopened } = show([known('a')], [folder('f', 'local')], {}, 'a')
    await screen.findByRole('dialog', { name: 'Project paper' })
    expect(onReopened).toHaveBeenCalled()
  })

  it('are shown with the reason where an address names one without a folder', async () => {
    show([known('a')], [], {}, 'a')
    await screen.findByText('Its folder was deleted or is in the trash.')
  })
})

describe('a remembered project on another machine', () => {
  it('is copied with its folder', async () => {
    const operation: Partial<Operation> = { id: 'o', kind: 'file-copy', state: 'done', folder: 'paper', agent: 'lab' }
    const { bodies } = show([known('a', { path: 'notebooks', address: 'https://x/paper' })], [folder('f', 'local')], {
      'POST /api/v1/files/copy': { ...operation, subject: 'paper', steps: [], log: '', revision: 1 },
      'GET /api/v1/folders/paper': folder('g', 'lab'),
    })
    await rows()
    await press('Open paper on another machine')
    await screen.findByText('Copies the folder paper from local.')
    await press('Copy')
    await screen.findByRole('dialog', { name: 'Project paper' })
    const to = { folder: 'paper', agent: 'lab' }
    expect(bodies('files/copy')).toEqual([{ from: { folder: 'f', agent: 'local' }, to }])
    await waitFor(() =>
      expect(bodies('folders/g/project/open')).toMatchObject([{ path: 'notebooks', address: 'https://x/paper' }]),
    )
  })

  it('is opened where the machine has the folder already', async () => {
    const { bodies } = show([known('a')], [folder('f', 'local'), folder('g', 'lab')])
    await rows()
    await press('Open paper on another machine')
    await screen.findByText('lab already has a folder named paper. It opens as it is.')
    await press('Open')
    await waitFor(() => expect(bodies('folders/g/project/open')).toHaveLength(1))
  })

  it('is cloned where only its address is left', async () => {
    show([known('a', { address: 'https://x/paper.git#demo' })], [])
    await rows()
    await press('Open paper on another machine')
    expect(screen.getByLabelText(/^Address/)).toHaveValue('https://x/paper.git#demo')
    await screen.findByText(/^Cloned on this computer and copied to lab, or cloned by lab/)
    expect(screen.getByRole('button', { name: 'Clone' })).toBeEnabled()
  })
})

describe('a repository where sessions of this computer are simulated', () => {
  it('is cloned by the git of another machine', async () => {
    const operation: Partial<Operation> = { id: 'o', kind: 'project-clone', state: 'running', agent: 'lab' }
    const machines = [makeMachine({ agent: 'local', engine: 'sim' })]
    const steps = [{ name: 'cloneThere', title: '', state: 'running' }]
    const { bodies } = show(
      [],
      [],
      { 'POST /api/v1/projects/clone': { ...operation, subject: 'paper', steps, revision: 1 } },
      '',
      null,
      machines,
    )
    await press('Open a project…')
    await userEvent.click(await screen.findByRole('radio', { name: 'Git repository' }))
    expect(screen.queryByLabelText(/^Directory for the clone/)).toBeNull()
    await userEvent.type(screen.getByLabelText(/^Address/), 'https://x/paper.git#demo')
    expect(screen.getByText(/The git of the machine clones it, and your answers go there\./)).toBeVisible()
    await press('Clone')
    await waitFor(() =>
      expect(bodies('projects/clone')).toEqual([{ address: 'https://x/paper.git#demo', directory: '', agent: 'lab' }]),
    )
    await screen.findByText('Clone the repository with the git of lab')
  })
})

describe('a directory that was dropped', () => {
  it('is chosen, and opened only then', async () => {
    const { sent, bodies } = show([], [], { 'POST /api/v1/folders': folder('f', 'local') }, '', {
      path: '/home/ada/my paper',
    })
    expect(await screen.findByRole('radio', { name: 'Directory' })).toBeChecked()
    expect(screen.getByRole('textbox', { name: /^Directory/ })).toHaveValue('/home/ada/my paper')
    expect(sent.filter((s) => s.method !== 'GET')).toEqual([])
    await press('Open')
    await screen.findByRole('dialog', { name: 'Project paper' })
    expect(bodies('folders')).toContainEqual({
      ...{ name: 'my-paper', agent: 'local', path: '/home/ada/my paper' },
      ...{ permission: 'rw', mode: 'general' },
    })
    expect(screen.queryByRole('dialog', { name: 'Open a project' })).toBeNull()
  })

  it('is uploaded by a browser into a new folder, and opened when all of it is there', async () => {
    let state: 'sending' | 'whole' | 'partly' = 'partly'
    const upload = vi.fn()
    const files = { name: 'my paper', count: 2, bytes: 2048, upload, stateOf: () => state, listOf: () => 'uploading' }
    const { bodies } = show([], [], { 'POST /api/v1/folders': folder('f', 'local') }, '', files)
    await screen.findByText(/Uploads 2 files \(2 KiB\)/)
    const name = screen.getByLabelText(/^Name of the new folder/)
    expect(name).toHaveValue('my-paper')
    await userEvent.clear(name)
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled()
    await userEvent.type(name, 'thesis')
    await press('Upload')
    await screen.findByText('uploading')
    expect(upload).toHaveBeenCalledTimes(1)
    expect(bodies('folders')).toContainEqual({ name: 'thesis', agent: 'local', permission: 'rw', mode: 'general' })
    state = 'whole' // what is left out is opened without
    await press('Open')
    await screen.findByRole('dialog', { name: 'Project paper' })
    expect(upload).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['/home/ada/paper', 'paper'],
    ['C:\\Users\\Ada\\paper\\', 'paper'],
    ['/home/ada/논문', 'project'],
    ['/home/ada/my (new) paper', 'my-new-paper'],
    ['/', 'project'],
  ])('%s becomes a folder named %s', (path, name) => expect(folderNameOf(path)).toBe(name))
})
