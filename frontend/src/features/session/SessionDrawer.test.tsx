import { act, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeMachine, makeSession } from '@/api/testing/session'
import type { Kernel } from '@/api/types.gen'
import { SessionDrawer } from './SessionDrawer'

const pending = makeSession({
  id: 'p',
  name: 'sweep-b',
  status: 'PENDING',
  wait: { code: 'scheduler_wait_resources', message: 'needs 12 CPUs, 3 of 16 are free', position: 2 },
})
Reflect.deleteProperty(pending, 'startedAt')
const failed = makeSession({
  id: 'f',
  name: 'train-a',
  status: 'ERROR',
  reason: 'oom-killed',
  terminatedAt: '2026-01-02T03:05:00Z',
  error: { code: 'session_run_oom-killed', message: 'It needed more than 2 GiB.', hint: 'Give it more.' },
})

function open(session = pending) {
  const onClose = vi.fn()
  const onAgain = vi.fn()
  const view = renderView(<SessionDrawer id={session.id} onClose={onClose} onAgain={onAgain} />, {
    known: { sessions: [session] },
  })
  return { ...view, onClose, onAgain }
}

describe('SessionDrawer', () => {
  it('says why a session waits, with its place in the queue', () => {
    open()
    expect(screen.getByText('Waiting, #2 on local')).toBeInTheDocument()
    expect(screen.getByText('needs 12 CPUs, 3 of 16 are free')).toBeInTheDocument()
    expect(screen.getByText('Start: unknown')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Apps' })).toBeDisabled()
  })
  it('names every container with its host name, state and id, and leads to its log', async () => {
    serve({ 'GET /api/v1/sessions/k/usage': [] })
    const kernel = (name: string, container: string, status: Kernel['status']): Kernel => ({
      name,
      hostname: `${name}-host`,
      container,
      status,
      exitCode: null,
      grants: { cpus: [], memory: 0, gpus: [] },
    })
    const { actions } = open(
      makeSession({
        id: 'k',
        name: 'two-of-them',
        kernels: [kernel('main1', 'aaaabbbbccccdddd', 'RUNNING'), kernel('sub1', '', 'PREPARING')],
      }),
    )
    expect(screen.getByRole('row', { name: /^main1 main1-host Running .*aaaabbbb/ })).toBeInTheDocument()
    const sub = screen.getByRole('row', { name: /^sub1 sub1-host Preparing/ })
    await userEvent.click(within(sub).getByRole('button', { name: 'Log of sub1' }))
    expect(actions.showLogs).toHaveBeenCalledWith('k', 'sub1')
    expect(within(sub).getByRole('button', { name: 'Terminal in sub1' })).toBeDisabled()
  })
  it('says on which computer each container runs, and why no image can be made', async () => {
    serve({ 'GET /api/v1/sessions/k/usage': [] })
    const grants = { cpus: [0], memory: 0, gpus: [] }
    const kernels = ['main1', 'sub1'].map((name, i): Kernel => ({
      ...{ name, hostname: name, container: name, node: `gpu0${i + 1}`, status: 'RUNNING', exitCode: null, grants },
    }))
    renderView(<SessionDrawer id="k" onClose={vi.fn()} onAgain={vi.fn()} />, {
      known: {
        sessions: [makeSession({ id: 'k', name: 'on-slurm', kernels, spec: { ...pending.spec, type: 'interactive' } })],
        machines: [makeMachine({ engine: 'slurm', lacks: ['commit', 'devices'] })],
      },
    })
    expect(screen.getByRole('row', { name: /^main1 main1 gpu01 Running/ })).toBeInTheDocument()
    expect(screen.getByRole('row', { name: /^sub1 sub1 gpu02 Running/ })).toBeInTheDocument()
    const commit = screen.getByRole('button', { name: 'Commit' })
    expect(commit).toBeDisabled()
    await userEvent.hover(commit)
    expect(await screen.findByText('No image can be made of a session on this machine.')).toBeInTheDocument()
  })
  it('tells what a session is, what it was given, and what is mounted, also unasked', async () => {
    const python = {
      id: 'python',
      title: 'Python',
      icon: 'python',
      summary: '',
      versions: [{ title: '3.12', image: 'python:3.12', installed: true, size: 0 }],
    }
    serve({ 'GET /api/v1/sessions/k/usage': [], 'GET /api/v1/environments': [python] })
    const folder = { folder: 'f1', name: 'data', path: 'raw', target: '/home/work/data', readOnly: true }
    const settings = { folder: 'f2', name: '.config', target: '/home/work/.config', auto: true }
    open(
      makeSession({
        id: 'k',
        name: 'all',
        type: 'batch',
        agent: 'lab',
        folders: [folder, settings],
        spec: {
          ...pending.spec,
          command: 'make',
          cluster: 2,
          resources: { cpu: 2, memory: 2 * 1024 ** 3, shm: 64 * 1024 ** 2 },
          mounts: [
            { folder: 'data', path: 'raw', target: '/home/work/data', readOnly: true },
            { source: '/srv/sets', target: '/home/work/sets' },
          ],
        },
      }),
    )
    expect(await screen.findByText('Python 3.12')).toBeInTheDocument()
    const fact = (name: string) => screen.getByText(name, { selector: 'dt' }).nextElementSibling
    expect(['ID', 'Type', 'Image', 'Machine', 'Cluster'].map((name) => fact(name)?.textContent)).toEqual([
      'k',
      'Batch',
      'python:3.12',
      'lab',
      '2 containers',
    ])
    expect(fact('Allocation')).toHaveTextContent('2 CPUs · 2 GiB · 64 MiB shared per container (CPU 0–1)')
    expect([...(fact('Mounts')?.children ?? [])].map((row) => row.textContent)).toEqual([
      'data/raw→/home/work/dataread-only',
      '/srv/sets→/home/work/sets',
      '.config→/home/work/.configauto-mounted',
    ])
    for (const name of ['Created', 'Started', 'Elapsed']) expect(fact(name)).not.toBeEmptyDOMElement()
  })
  it('offers ssh where the session is reached by it, and says so where it is not', () => {
    const { unmount } = open(makeSession({ id: 'r', name: 'with-ssh' }))
    expect(screen.getByRole('button', { name: 'SSH' })).toBeEnabled()
    expect(screen.getByText('slipway ssh with-ssh')).toBeInTheDocument()
    unmount()
    const closed = makeSession({ id: 'c', name: 'without' })
    open({ ...closed, spec: { ...closed.spec, noSSH: true } })
    expect(screen.queryByRole('button', { name: 'SSH' })).toBeNull()
    expect(screen.getByText('No SSH access')).toBeInTheDocument()
    expect(screen.queryByText('slipway ssh without')).toBeNull()
  })
  it('shows a pull in bytes, rate, time left and layers as it goes on', async () => {
    const { client } = open()
    const pull = { current: 1024 ** 3, total: 2 * 1024 ** 3, rate: 256 * 1024 ** 2, layersDone: 3, layers: 9 }
    act(() => applyEvent(client, { epoch: 'e', seq: 1, session: { ...pending, status: 'PULLING', pull, revision: 2 } }))
    expect(await screen.findByText('1 GiB of 2 GiB · 256 MiB/s · 4 s left · 3/9 layers')).toBeInTheDocument()
    expect(screen.getByRole('progressbar')).toHaveAttribute('aria-valuenow', '50')
  })
  it('shows the sentence, hint and code of a failure, and launches again', async () => {
    serve({ 'GET /api/v1/sessions/f/usage': [] })
    const { onAgain } = open(failed)
    expect(screen.getByRole('alert')).toHaveTextContent('It needed more than 2 GiB.Give it more.session_run_oom-killed')
    await userEvent.click(screen.getByRole('button', { name: 'Launch again' }))
    expect(onAgain).toHaveBeenCalledWith(failed)
  })
  it('renames with Enter and shows what was stored', async () => {
    const sent = serve({ 'PATCH /api/v1/sessions/p': { ...pending, name: 'renamed', revision: 5 } })
    open()
    await userEvent.click(screen.getByRole('button', { name: 'Rename' }))
    await userEvent.clear(screen.getByRole('textbox', { name: 'New name' }))
    await userEvent.type(screen.getByRole('textbox', { name: 'New name' }), 'renamed{Enter}')
    expect(await screen.findByRole('heading', { name: 'renamed' })).toBeInTheDocument()
    expect(sent).toContainEqual({ method: 'PATCH', path: '/api/v1/sessions/p', body: { name: 'renamed' } })
  })
  it('refuses a bad name before it is sent and leaves with Escape', async () => {
    const sent = serve({})
    open()
    await userEvent.click(screen.getByRole('button', { name: 'Rename' }))
    await userEvent.clear(screen.getByRole('textbox', { name: 'New name' }))
    await userEvent.type(screen.getByRole('textbox', { name: 'New name' }), 'a b{Enter}')
    expect(screen.getByRole('alert')).toHaveTextContent('A name needs at least 4 characters.')
    await userEvent.keyboard('{Escape}')
    expect(screen.getByRole('heading', { name: 'sweep-b' })).toBeInTheDocument()
    expect(sent.filter((s) => s.method === 'PATCH')).toEqual([])
  })
  it('keeps the field open with what the server says against the name', async () => {
    serve({
      'PATCH /api/v1/sessions/p': () =>
        refusal(409, 'session_create_already-exists', 'Another live session has it.', 'Choose another.'),
    })
    open()
    await userEvent.click(screen.getByRole('button', { name: 'Rename' }))
    await userEvent.clear(screen.getByRole('textbox', { name: 'New name' }))
    await userEvent.type(screen.getByRole('textbox', { name: 'New name' }), 'taken{Enter}')
    await waitFor(() =>
      expect(screen.getByRole('alert')).toHaveTextContent('Another live session has it. Choose another.'),
    )
  })
  it('fetches a session that the list does not hold, and says so when there is none', async () => {
    serve({ 'GET /api/v1/sessions/gone': () => refusal(404, 'session_read_not-found', 'There is no session gone.') })
    const onClose = vi.fn()
    renderView(<SessionDrawer id="gone" onClose={onClose} onAgain={vi.fn()} />, { known: { sessions: [] } })
    expect(await screen.findByText('There is no session gone.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Close' }))
    expect(onClose).toHaveBeenCalledOnce()
  })
  it('keeps the view in the address and shows the phases with the steps that went wrong open', async () => {
    serve({
      'GET /api/v1/sessions/p/history': [
        {
          id: 'h',
          session: 'p',
          phase: 'prepare',
          result: 'NEED_RETRY',
          from: 'SCHEDULED',
          to: 'PREPARED',
          attempts: 2,
          code: 'engine_call_timeout',
          message: 'The registry is silent.',
          createdAt: '2026-01-01T00:00:00Z',
          updatedAt: '2026-01-01T00:00:42Z',
          steps: [
            {
              step: 'pull',
              result: 'FAILURE',
              message: 'no byte for 30 s',
              startedAt: '2026-01-01T00:00:00Z',
              endedAt: '2026-01-01T00:00:30Z',
            },
          ],
        },
        {
          id: 'g',
          session: 'p',
          phase: 'schedule',
          result: 'SUCCESS',
          from: 'PENDING',
          to: 'SCHEDULED',
          attempts: 1,
          createdAt: '2026-01-01T00:00:00Z',
          updatedAt: '2026-01-01T00:00:00Z',
          steps: [
            { step: 'reserve', result: 'SUCCESS', startedAt: '2026-01-01T00:00:00Z', endedAt: '2026-01-01T00:00:00Z' },
          ],
        },
      ],
    })
    const { where } = open()
    await userEvent.click(screen.getByRole('tab', { name: 'Scheduling' }))
    expect(where()).toBe('/?view=history')
    expect(await screen.findByText('no byte for 30 s')).toBeInTheDocument()
    expect(screen.queryByText('reserve')).not.toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Show the steps of Schedule' }))
    expect(screen.getByText('reserve')).toBeInTheDocument()
  })
})
