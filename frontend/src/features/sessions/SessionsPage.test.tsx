import { act, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine, makeSession } from '@/api/testing/session'
import type { Session } from '@/api/types.gen'
import { SessionsPage } from './SessionsPage'

const running = makeSession({ id: 'run', name: 'train-a', createdAt: '2026-01-02T00:00:00Z' })
const waiting = makeSession({
  id: 'wait',
  name: 'sweep-b',
  type: 'batch',
  status: 'PENDING',
  wait: { code: 'scheduler_wait_resources', message: 'needs 12 CPUs, 3 of 16 are free', position: 1 },
})
const ended = makeSession({
  id: 'end',
  name: 'old-c',
  status: 'TERMINATED',
  reason: 'user-requested',
  terminatedAt: '2026-01-02T04:00:00Z',
})
const known = { sessions: [running, waiting, ended], machines: [makeMachine()], agents: [makeAgent()] }

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600)
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1000)
})

afterEach(() => void vi.useRealTimers())

describe('SessionsPage', () => {
  it('lists live sessions with why they wait, and leaves finished ones out', () => {
    renderView(<SessionsPage openId={undefined} />, { known })
    expect(screen.getByText('train-a')).toBeInTheDocument()
    expect(screen.getByText('needs 12 CPUs, 3 of 16 are free')).toBeInTheDocument()
    expect(screen.getByText('#1 on local')).toBeInTheDocument()
    expect(screen.getByText('Start: unknown')).toBeInTheDocument()
    expect(screen.queryByText('old-c')).not.toBeInTheDocument()
  })
  it('shows that a running session is in trouble, in words of the language', () => {
    const lost = makeSession({
      id: 'lost',
      name: 'hit-d',
      warnings: [
        {
          code: 'session_run_device-lost',
          title: 'Server title',
          text: 'GPU 0 is lost: it fell off the bus.',
          at: '2026-01-02T00:00:00Z',
          device: 'GPU-0',
        },
      ],
    })
    const other = makeSession({
      id: 'other',
      name: 'hit-e',
      warnings: [
        {
          code: 'session_run_process-limit',
          title: 'Another title',
          text: 'Of no known code.',
          at: '2026-01-02T00:00:00Z',
        },
      ],
    })
    renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [lost, other] } })
    expect(screen.getByText('A GPU of the session is lost')).toBeInTheDocument()
    expect(screen.getByText('Another title')).toBeInTheDocument()
  })
  it('breaks a cluster down into its containers, and a single one not', async () => {
    const kernel = (name: string, status: Session['status']) => ({
      name,
      hostname: name,
      status,
      exitCode: null,
      container: '',
      grants: { cpus: [], memory: 0, gpus: [] },
    })
    const cluster = makeSession({
      id: 'c',
      name: 'trio',
      spec: { ...running.spec, cluster: 3 },
      kernels: [kernel('main1', 'RUNNING'), kernel('sub1', 'RUNNING'), kernel('sub2', 'CREATING')],
    })
    const single = makeSession({ id: 's', name: 'solo', kernels: [kernel('main1', 'RUNNING')] })
    renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [cluster, single] } })
    const ring = screen.getByRole('img', { name: '2 of 3 containers running' }) // there is no other
    expect(ring).toHaveTextContent('2/3')
    await userEvent.hover(ring)
    expect((await screen.findByText('sub2')).parentElement).toHaveTextContent('Creating')
  })
  it('changes a row when an event comes', async () => {
    const { client } = renderView(<SessionsPage openId={undefined} />, { known })
    act(() => applyEvent(client, { epoch: 'e', seq: 1, session: { ...waiting, status: 'RUNNING', revision: 2 } }))
    await waitFor(() => expect(screen.getAllByText('Running', { selector: '[data-status=RUNNING]' })).toHaveLength(2))
  })
  it('keeps the chosen tab in the address', async () => {
    const { where } = renderView(<SessionsPage openId={undefined} />, { known })
    await userEvent.click(screen.getByRole('tab', { name: /Batch/ }))
    expect(where()).toBe('/?type=batch')
    expect(screen.queryByText('train-a')).not.toBeInTheDocument()
  })
  it('filters at once when one goes elsewhere, so that what is opened next is not left again', async () => {
    const { where } = renderView(<SessionsPage openId={undefined} />, { known })
    await userEvent.type(screen.getByRole('combobox', { name: 'Filter sessions' }), 'train')
    await userEvent.tab()
    expect(where()).toBe('/?q=train')
  })
  it('finds by the filter after a pause and offers to clear it when nothing is left', async () => {
    const { where } = renderView(<SessionsPage openId={undefined} />, { known })
    await userEvent.type(screen.getByRole('combobox', { name: 'Filter sessions' }), 'status:error')
    await screen.findByText('No sessions match')
    await waitFor(() => expect(where()).toBe('/?q=status%3Aerror'))
    await userEvent.click(screen.getByRole('button', { name: 'Clear filter' }))
    await screen.findByText('train-a')
  })
  it('fetches finished sessions when they are asked for and lets none be selected', async () => {
    serve({
      'GET /api/v1/sessions': [
        ended,
        makeSession({ id: 'older', name: 'older-d', status: 'ERROR', reason: 'oom-killed' }),
      ],
    })
    renderView(<SessionsPage openId={undefined} />, { at: '/?state=finished', known })
    expect(await screen.findByText('older-d')).toBeInTheDocument()
    expect(screen.getByText('Out of memory')).toBeInTheDocument()
    expect(screen.queryByRole('checkbox')).not.toBeInTheDocument()
  })
  it('terminates what is selected, and only what still lives', async () => {
    const { actions, client } = renderView(<SessionsPage openId={undefined} />, { known })
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select train-a' }))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select sweep-b' }))
    expect(screen.getByText('2 sessions selected')).toBeInTheDocument()
    act(() => applyEvent(client, { epoch: 'e', seq: 1, session: { ...waiting, status: 'CANCELLED', revision: 2 } }))
    expect(await screen.findByText('1 session selected')).toBeInTheDocument()
    const bar = screen.getByText('1 session selected').parentElement
    await userEvent.click(within(bar as HTMLElement).getByRole('button', { name: 'Terminate' }))
    expect(actions.terminate).toHaveBeenCalledWith(['run'])
  })
  it('offers apps and a terminal only where a session runs', async () => {
    const { actions } = renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [running] } })
    await userEvent.click(screen.getByRole('button', { name: 'Terminal' }))
    expect(actions.openTerminal).toHaveBeenCalledWith('run')
  })
  it('disables them while it waits', () => {
    renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [waiting] } })
    expect(screen.getByRole('button', { name: 'Terminal' })).toBeDisabled()
    expect(screen.getByRole('button', { name: 'Apps' })).toBeDisabled()
  })
  it('opens a session by its row', async () => {
    const { where } = renderView(<SessionsPage openId={undefined} />, { at: '/sessions?q=train', known })
    await userEvent.click(screen.getByText('train-a'))
    expect(where()).toBe('/sessions/run?q=train')
  })
  it('takes all that are listed at once, those out of sight too, and is read again when asked', async () => {
    const many = Array.from({ length: 60 }, (_, i) => makeSession({ id: `m${i}`, name: `many-${i}` }))
    const sent = serve({ 'GET /api/v1/sessions': many })
    const { actions } = renderView(<SessionsPage openId={undefined} />, {
      known: { ...known, sessions: [...many, ended] },
    })
    const seen = screen.getAllByRole('checkbox', { name: /^Select many-/ }).length
    expect(seen).toBeLessThan(60)
    await userEvent.click(screen.getByRole('button', { name: 'Refresh' }))
    await waitFor(() => expect(sent.some((s) => s.path === '/api/v1/sessions')).toBe(true))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select all' }))
    const bar = (await screen.findByText('60 sessions selected')).parentElement
    await userEvent.click(within(bar as HTMLElement).getByRole('button', { name: 'Terminate' }))
    expect(actions.terminate.mock.calls[0]?.[0]).toHaveLength(60)
  })
  it('selects at once only what is one’s own, and says of how many others it is', async () => {
    const others = makeSession({ id: 'others', name: 'llm-d', owner: 'bob' })
    const { actions } = renderView(<SessionsPage openId={undefined} />, {
      known: { ...known, sessions: [running, waiting, others] },
    })
    const all = () => screen.getByRole('checkbox', { name: 'Select all' })
    await userEvent.click(all())
    expect(screen.getByText('2 sessions selected')).toBeInTheDocument()
    expect(all()).toBeChecked()
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select llm-d' }))
    const bar = screen.getByText('3 sessions selected').parentElement as HTMLElement
    expect(bar).toHaveTextContent('1 of another owner')
    await userEvent.click(within(bar).getByRole('button', { name: 'Terminate' }))
    expect(new Set(actions.terminate.mock.calls[0]?.[0])).toEqual(new Set(['run', 'wait', 'others']))
    await userEvent.click(all())
    expect(screen.queryByText(/selected/)).not.toBeInTheDocument()
  })
  it('selects nothing at once where all are of others', () => {
    const others = makeSession({ id: 'others', name: 'llm-d', owner: 'bob' })
    renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [others] } })
    expect(screen.getByRole('checkbox', { name: 'Select all' })).toBeDisabled()
  })
  it('never has more selected than is seen, whatever has changed the filter', async () => {
    const { navigate } = renderView(<SessionsPage openId={undefined} />, { at: '/sessions', known })
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select all' }))
    expect(screen.getByText('2 sessions selected')).toBeInTheDocument()
    await navigate('/sessions?q=train')
    expect(await screen.findByText('1 session selected')).toBeInTheDocument()
  })
  it('shows what is about to be terminated, and how to undo it', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const at = new Date(Date.now() + 8000).toISOString()
    const { actions, client } = renderView(<SessionsPage openId={undefined} />, {
      known: { ...known, sessions: [{ ...running, ending: { at } }] },
    })
    expect(screen.getByText('Terminates in 8 s')).toBeInTheDocument()
    vi.useRealTimers()
    expect(screen.queryByRole('button', { name: 'Terminate' })).not.toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }))
    expect(actions.undoTerminate).toHaveBeenCalledWith(['run'])
    const error = { code: 'agent_call_unavailable', message: 'lab is not reached.', hint: '', fields: [] } as const
    act(() => applyEvent(client, { epoch: 'e', seq: 1, session: { ...running, ending: { at, error } as never } }))
    expect(await screen.findByText('Not terminated: lab is not reached.')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Terminate' })).toBeInTheDocument()
  })
  it('remembers which columns were chosen', async () => {
    const first = renderView(<SessionsPage openId={undefined} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Choose columns' }))
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Machine' }))
    expect(screen.getByRole('columnheader', { name: 'Machine' })).toBeInTheDocument()
    first.unmount()
    renderView(<SessionsPage openId={undefined} />, { known })
    expect(screen.getByRole('columnheader', { name: 'Machine' })).toBeInTheDocument()
  })
  it('names those that a session waits for, and those that wait for it', async () => {
    const prepare = makeSession({ id: 'prep', name: 'prepare', dependents: ['wait', 'gone'] })
    renderView(<SessionsPage openId={undefined} />, {
      known: { ...known, sessions: [prepare, { ...waiting, dependsOn: ['prep'] }] },
    })
    await userEvent.click(screen.getByRole('button', { name: 'Choose columns' }))
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Dependencies' }))
    expect(screen.getByRole('img', { name: 'Waits for' }).parentElement).toHaveTextContent('prepare')
    expect(screen.getByRole('img', { name: 'Required by' }).parentElement).toHaveTextContent('sweep-b, gone')
  })
  it('explains itself when there is nothing', () => {
    renderView(<SessionsPage openId={undefined} />, { known: { ...known, sessions: [] } })
    expect(screen.getByText('No running sessions')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Launch a session' })).toBeInTheDocument()
  })
  it('tells of what has failed while one did not look, until one looks', async () => {
    const at = new Date(Date.now() - 60_000).toISOString()
    const lately = makeSession({
      id: 'oom',
      name: 'oom-f',
      status: 'TERMINATED',
      result: 'failure',
      reason: 'oom-killed',
      terminatedAt: at,
    })
    const older = { ...lately, id: 'past', name: 'past-g', terminatedAt: '2026-01-02T04:00:00Z' }
    serve({ 'GET /api/v1/sessions': [lately, older] })
    renderView(<SessionsPage openId={undefined} />, {
      known: { ...known, sessions: [lately, older, { ...lately, id: 'well', name: 'well-h', result: 'success' }] },
    })
    expect(screen.getAllByText('1 session failed since your last visit')).toHaveLength(2)
    await userEvent.click(screen.getByRole('button', { name: 'Show failed sessions' }))
    expect(await screen.findByText('oom-f')).toBeInTheDocument()
    expect(await screen.findByText('past-g')).toBeInTheDocument()
    await userEvent.click(screen.getByText('Running', { selector: '.ant-segmented-item-label' }))
    expect(await screen.findByText('No running sessions')).toBeInTheDocument()
    expect(screen.queryByText('1 session failed since your last visit')).not.toBeInTheDocument()
  })
  it('says what failed and tries again when asked', async () => {
    let broken = true
    serve({
      'GET /api/v1/sessions': () =>
        broken
          ? refusal(503, 'agent_call_unavailable', 'The store cannot be read.', 'Look at the log.')
          : new Response('[]'),
    })
    renderView(<SessionsPage openId={undefined} />, { known: { machines: [makeMachine()] } })
    const alert = await screen.findByRole('alert')
    expect(alert).toHaveTextContent('The store cannot be read.Look at the log.agent_call_unavailable')
    broken = false
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }))
    await screen.findByText('No running sessions')
  })
})
