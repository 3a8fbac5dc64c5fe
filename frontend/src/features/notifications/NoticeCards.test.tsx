import { act, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { renderView } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { Session } from '@/api/types.gen'
import { NoticeCards } from './NoticeCards'
import { NoticesBell } from './NoticesBell'
import { NoticesProvider } from './NoticesProvider'

const fresh = makeSession({ id: 'n', name: 'train-a', status: 'PENDING' })

function open() {
  const onMore = vi.fn()
  const view = renderView(
    <NoticesProvider>
      <NoticesBell onOpen={vi.fn()} />
      <NoticeCards inset={0} hide={undefined} onMore={onMore} />
    </NoticesProvider>,
    { known: { sessions: [] } },
  )
  let seq = 0
  const tell = (session: Session) =>
    act(() => applyEvent(view.client, { epoch: 'e', seq: ++seq, session: { ...session, revision: seq } }))
  return { ...view, onMore, tell }
}

describe('the cards of sessions', () => {
  afterEach(() => vi.useRealTimers())

  it('follow one session in place from launch to running', async () => {
    const { tell, actions } = open()
    tell(fresh)
    expect(await screen.findByText('Pending')).toBeInTheDocument()
    tell({ ...fresh, status: 'RUNNING' })
    await waitFor(() => expect(screen.queryByText('Pending')).not.toBeInTheDocument())
    expect(screen.getAllByText('train-a')).toHaveLength(1)
    await userEvent.click(screen.getByRole('button', { name: 'Apps' }))
    expect(actions.openApps).toHaveBeenCalledWith('n')
    expect(screen.getByRole('button', { name: 'Notifications, 1 unread' })).toBeInTheDocument()
  })
  it('say why a session waits and when it starts', async () => {
    const { tell } = open()
    const wait = { code: 'scheduler_wait_resources' as const, message: 'Needs 2 of 8 GPUs on lab.', position: 1 }
    tell({ ...fresh, wait })
    expect(await screen.findByText('Needs 2 of 8 GPUs on lab.')).toBeInTheDocument()
    expect(screen.getByText('Start: unknown')).toBeInTheDocument()
    const latest = { say: 'estimateLatest', with: [{ hole: 'at', say: 'moment', text: '2026-01-02T03:04:00' }] }
    tell({ ...fresh, wait: { ...wait, estimate: latest } })
    expect(await screen.findByText('Start: at the latest 2026-01-02 03:04')).toBeInTheDocument()
  })
  it('close by themselves after the end', async () => {
    vi.useFakeTimers()
    const { tell } = open()
    tell(fresh)
    tell({ ...fresh, status: 'TERMINATED', reason: 'user-requested' })
    await act(() => vi.advanceTimersByTimeAsync(100))
    expect(screen.getByText('Terminated')).toBeInTheDocument()
    await act(() => vi.advanceTimersByTimeAsync(6_000))
    expect(screen.queryByText('Terminated')).not.toBeInTheDocument()
  })
  it('stay away once dismissed, until the session ends', async () => {
    const { tell } = open()
    tell(fresh)
    await userEvent.click(await screen.findByRole('button', { name: 'Dismiss the notification of train-a' }))
    tell({ ...fresh, status: 'RUNNING' })
    expect(screen.queryByText('train-a')).not.toBeInTheDocument()
    tell({
      ...fresh,
      status: 'ERROR',
      reason: 'oom-killed',
      error: { code: 'session_run_oom-killed', message: 'It needed more memory.' },
    })
    expect(await screen.findByText('It needed more memory.')).toBeInTheDocument()
  })
  it('show three and say how many more there are', async () => {
    const { tell, onMore } = open()
    for (const n of [1, 2, 3, 4, 5]) tell(makeSession({ id: `s${n}`, name: `name-${n}`, status: 'PENDING' }))
    await userEvent.click(await screen.findByRole('button', { name: '2 more' }))
    expect(onMore).toHaveBeenCalled()
    expect(screen.getAllByText('Pending')).toHaveLength(3)
  })
})
