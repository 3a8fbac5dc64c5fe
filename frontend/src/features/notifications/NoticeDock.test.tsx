import { act, fireEvent, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { renderView } from '@/api/testing/render'
import { makeAgent, makeSession } from '@/api/testing/session'
import type { Session } from '@/api/types.gen'
import { setClock } from '@/lib/now'
import { NoticeDock } from './NoticeDock'
import { NoticesBell } from './NoticesBell'
import { NoticesDrawer } from './NoticesDrawer'
import { NoticesProvider } from './NoticesProvider'

const fresh = makeSession({ id: 'n', name: 'train-a', status: 'PENDING' })
const agents = [makeAgent({ name: 'local', owner: 'me' })]

beforeEach(() => localStorage.clear())

function open(sessions: Session[] = [], bell = false) {
  const onMore = vi.fn()
  const view = renderView(
    <NoticesProvider>
      <NoticesBell onOpen={vi.fn()} />
      <NoticeDock hide={undefined} onMore={onMore} />
      {bell ? <NoticesDrawer onClose={vi.fn()} /> : null}
    </NoticesProvider>,
    { known: { sessions, agents } },
  )
  let seq = 0
  const tell = (...sessions: Session[]) =>
    act(() => {
      for (const session of sessions)
        applyEvent(view.client, { epoch: 'e', seq: ++seq, session: { ...session, revision: seq } })
    })
  return { ...view, onMore, tell }
}

const expand = async (name: string) =>
  userEvent.click(await screen.findByRole('button', { name: new RegExp(`^${name}`) }))

describe('the card of a launch', () => {
  afterEach(() => vi.useRealTimers())

  it('is one line that follows a session in place, and opens to what can be done', async () => {
    const { tell, actions } = open()
    tell(fresh)
    expect(await screen.findByText('Pending')).toBeInTheDocument()
    tell({ ...fresh, status: 'RUNNING' })
    await waitFor(() => expect(screen.queryByText('Pending')).not.toBeInTheDocument())
    expect(screen.getAllByText('train-a')).toHaveLength(1)
    expect(screen.queryByRole('button', { name: 'Apps' })).not.toBeInTheDocument()
    expect(screen.queryByRole('button', { name: 'Terminate' })).not.toBeInTheDocument()
    await expand('train-a')
    await userEvent.click(screen.getByRole('button', { name: 'Apps' }))
    expect(actions.openApps).toHaveBeenCalledWith('n')
    await userEvent.click(screen.getByRole('button', { name: 'Terminate' }))
    expect(actions.terminate).toHaveBeenCalledWith(['n'])
    await userEvent.click(screen.getByRole('button', { name: 'Collapse train-a' }))
    expect(screen.queryByRole('button', { name: 'Apps' })).not.toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Notifications, 1 unread' })).toBeInTheDocument()
  })
  it('says why a session waits and when it starts', async () => {
    const { tell } = open()
    const wait = { code: 'scheduler_wait_resources' as const, message: 'Needs 2 of 8 GPUs on lab.', position: 1 }
    tell({ ...fresh, wait })
    await expand('train-a')
    expect(await screen.findByText('Needs 2 of 8 GPUs on lab.')).toBeInTheDocument()
    expect(screen.getByText('Start: unknown')).toBeInTheDocument()
  })
  it('is one for all sessions of a launch, and counts them', async () => {
    const { tell, actions } = open()
    const swarm = [1, 2, 3, 4, 5, 6].map((n) =>
      makeSession({ id: `s${n}`, name: `swarm-${n}`, launch: 'l', status: n > 2 ? 'PULLING' : 'RUNNING' }),
    )
    tell(...swarm)
    const chip = await screen.findByRole('button', { name: /^swarm/ })
    expect(chip).toHaveTextContent('swarm4 of 6 pulling')
    expect(screen.getAllByRole('button', { name: /^Dismiss/ })).toHaveLength(1)
    await userEvent.click(chip)
    const panel = screen.getByRole('region', { name: 'swarm' })
    expect(within(panel).getAllByRole('listitem')).toHaveLength(6)
    await userEvent.click(within(panel).getByRole('button', { name: 'Terminate all 6' }))
    expect(actions.terminate).toHaveBeenCalledWith(swarm.map((s) => s.id))
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss the notification of swarm' }))
    expect(screen.queryByText(/pulling/)).not.toBeInTheDocument()
  })
  it('counts the containers of a cluster', async () => {
    const { tell } = open()
    const kernel = (name: string, status: string) => ({ ...makeKernel, name, status: status as 'RUNNING' })
    tell({
      ...fresh,
      status: 'CREATING',
      spec: { ...fresh.spec, cluster: 2 },
      kernels: [kernel('main1', 'RUNNING'), kernel('sub1', 'CREATING')],
    })
    expect(await screen.findByText('1 of 2 creating')).toBeInTheDocument()
  })
  it('closes by itself after the end', async () => {
    vi.useFakeTimers()
    const { tell } = open()
    tell(fresh)
    tell({ ...fresh, status: 'TERMINATED', reason: 'user-requested' })
    await act(() => vi.advanceTimersByTimeAsync(100))
    expect(screen.getByText('Terminated')).toBeInTheDocument()
    await act(() => vi.advanceTimersByTimeAsync(6_000))
    expect(screen.queryByText('Terminated')).not.toBeInTheDocument()
  })
  it('neither comes nor goes while a button is held down: what is pressed stays under the pointer', async () => {
    vi.useFakeTimers()
    const { tell } = open()
    const press = (button: HTMLElement) => fireEvent.pointerDown(button)
    const release = (button: HTMLElement) => fireEvent.pointerUp(button)
    const bell = screen.getByRole('button', { name: 'Notifications' })
    press(bell)
    tell(fresh)
    await act(() => vi.advanceTimersByTimeAsync(100))
    expect(screen.queryByText('Pending')).not.toBeInTheDocument()
    release(bell)
    expect(screen.getByText('Pending')).toBeInTheDocument()
    tell({ ...fresh, status: 'TERMINATED', reason: 'user-requested' })
    await act(() => vi.advanceTimersByTimeAsync(100))
    press(bell)
    await act(() => vi.advanceTimersByTimeAsync(6_000))
    expect(screen.getByText('Terminated')).toBeInTheDocument()
    release(bell)
    expect(screen.queryByText('Terminated')).not.toBeInTheDocument()
  })
  it('stays away once dismissed, until the session ends', async () => {
    const { tell } = open()
    tell(fresh)
    await userEvent.click(await screen.findByRole('button', { name: 'Dismiss the notification of train-a' }))
    tell({ ...fresh, status: 'RUNNING' })
    expect(screen.queryByText('train-a')).not.toBeInTheDocument()
    const error = { code: 'session_run_oom-killed' as const, message: 'It needed more memory.' }
    tell({ ...fresh, status: 'ERROR', reason: 'oom-killed', error })
    await expand('train-a')
    expect(await screen.findByText('It needed more memory.')).toBeInTheDocument()
  })
  it('is not shown for what other people launch', async () => {
    const { tell } = open()
    tell({ ...fresh, owner: 'eve' }, makeSession({ id: 'm', name: 'my-own', status: 'PENDING' }))
    expect(await screen.findByText('my-own')).toBeInTheDocument()
    expect(screen.queryByText('train-a')).not.toBeInTheDocument()
  })
  it('is one of three, and the rest are counted', async () => {
    const { tell, onMore } = open()
    tell(...[1, 2, 3, 4, 5].map((n) => makeSession({ id: `s${n}`, name: `name-${n}`, status: 'PENDING' })))
    await userEvent.click(await screen.findByRole('button', { name: '2 more' }))
    expect(onMore).toHaveBeenCalled()
    expect(screen.getAllByText('Pending')).toHaveLength(3)
  })
})

const makeKernel = {
  hostname: 'h',
  container: '',
  exitCode: null,
  grants: { cpus: [], memory: 0, gpus: [] },
}

describe('a session that is about to be reclaimed', () => {
  const start = Date.parse('2026-01-02T03:04:05Z')
  const checkedAt = '2026-01-02T03:04:05Z'
  const check = { checker: 'network' as const, state: 'idle' as const, message: '', metrics: [], checkedAt }
  const warned = (seconds: number, more: Partial<Session> = {}) =>
    makeSession({
      id: 'n',
      name: 'forgotten',
      idle: [{ ...check, expiresAt: new Date(start + seconds * 1000).toISOString() }],
      warnings: [{ code: 'session_idle_network', title: '', text: '', at: checkedAt }],
      ...more,
    })
  beforeEach(() => setClock({ speed: 1, shown: start, real: Date.now() }))
  afterEach(() => setClock())

  it('counts down with ways to keep it, and is in the bell', async () => {
    const { tell, actions } = open([warned(90, { warnings: [] })])
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
    tell(warned(90))
    const card = within(await screen.findByRole('alert'))
    expect(card.getByText(/^forgotten ends in 1m \d+s$/)).toBeInTheDocument()
    expect(card.getByText(/^It has had no activity\./)).toBeInTheDocument()
    for (const [name, hours] of [
      ['Keep for 1 h', 1],
      ['Keep for 4 h', 4],
    ] as const) {
      await userEvent.click(card.getByRole('button', { name }))
      expect(actions.keep).toHaveBeenLastCalledWith(['n'], hours)
    }
    await userEvent.click(card.getByRole('button', { name: 'Keep until tomorrow at 09:00' }))
    // The clock of the page has gone on since start.
    const kept = (actions.keep.mock.lastCall?.[1] as number) * 3_600_000
    const until = new Date(Math.round((start + kept) / 60_000) * 60_000)
    expect([until.getHours(), until.getDate()]).toEqual([9, new Date(start + 86_400_000).getDate()])
    await userEvent.click(card.getByRole('button', { name: 'Stop and keep' }))
    expect(actions.park).toHaveBeenCalledWith(['n'])
    expect(screen.getByRole('button', { name: 'Notifications, 1 unread' })).toBeInTheDocument()
    tell(warned(3600, { warnings: [], keepUntil: '2026-01-02T04:04:05Z' }))
    await waitFor(() => expect(screen.queryByRole('alert')).not.toBeInTheDocument())
  })
  it('has one warning for all of a launch', async () => {
    const { actions } = open([1, 2].map((n) => warned(80 + n, { id: `s${n}`, name: `swarm-${n}`, launch: 'l' })))
    const card = within(screen.getByRole('alert'))
    expect(card.getByText(/^swarm \(2 sessions\) ends in 1m \d+s$/)).toBeInTheDocument()
    expect(card.queryByRole('button', { name: 'Stop and keep' })).not.toBeInTheDocument()
    await userEvent.click(card.getByRole('button', { name: 'Keep for 1 h' }))
    expect(actions.keep).toHaveBeenCalledWith(['s1', 's2'], 1)
  })
  it('is warned of again in its last minute after the warning was dismissed', async () => {
    const { tell } = open([])
    tell(warned(90))
    await userEvent.click(await screen.findByRole('button', { name: 'Dismiss the notification of forgotten' }))
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
    act(() => setClock({ speed: 1, shown: start + 31_000, real: Date.now() }))
    expect(await screen.findByRole('alert')).toBeInTheDocument()
  })
  it("is not warned of if it is another person's, or if its machine is not reached", () => {
    open([warned(90, { owner: 'eve' }), warned(90, { id: 'm', lastHeard: '2026-01-02T03:00:00Z' })])
    expect(screen.queryByRole('alert')).not.toBeInTheDocument()
  })

  const ended: Partial<Session> = {
    status: 'TERMINATED',
    reason: 'idle-timeout',
    terminatedAt: '2026-01-02T03:05:00Z',
    error: { code: 'session_run_reclaimed', message: 'The session was reclaimed. No activity for 2 min.' },
  }
  it('stays in the bell after its end, with the reason and the way to its history', async () => {
    const { tell } = open([warned(90)], true)
    const drawer = within(screen.getByRole('dialog'))
    expect(drawer.getByText(/^Ends at .* unless you keep it$/)).toBeInTheDocument()
    tell(warned(90, ended))
    expect(await drawer.findByText('The session was reclaimed. No activity for 2 min.')).toBeInTheDocument()
    expect(drawer.getByRole('link', { name: 'History' })).toHaveAttribute('href', '/sessions/n?view=history')
  })
  it('is in the bell if it ended while no page was open', () => {
    open([makeSession({ id: 'old', terminatedAt: '2026-01-02T03:00:00Z', status: 'TERMINATED' })]).unmount()
    open([warned(90, ended)])
    expect(screen.getByRole('button', { name: 'Notifications, 1 unread' })).toBeInTheDocument()
  })
  it('is not told of by the first page ever', () => {
    open([warned(90, ended)])
    expect(screen.getByRole('button', { name: 'Notifications' })).toBeInTheDocument()
  })
})
