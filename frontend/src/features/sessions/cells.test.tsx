import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it, vi } from 'vitest'
import { keys } from '@/api/keys'
import { renderView } from '@/api/testing/render'
import { makeMachine, makeSession } from '@/api/testing/session'
import { now } from '@/lib/now'
import { StatusCell } from './cells'
import { AcceleratorCell, PriorityForm } from './queueCells'
import { UsageCell } from './UsageCell'

it('never says that a machine was last heard in the future, whose clock may be ahead', () => {
  renderView(<StatusCell session={makeSession({ lastHeard: new Date(now() + 1500).toISOString() })} />, { at: '/' })
  expect(screen.getByText('Last heard now')).toBeInTheDocument()
})

it('counts down to an announced end in place of its warning', async () => {
  const end = { expiresAt: new Date(now() + 90_500).toISOString(), checkedAt: new Date(now()).toISOString() }
  const session = makeSession({
    idle: [{ checker: 'lifetime', state: 'idle', message: '', metrics: [], ...end }],
    warnings: [{ code: 'session_idle_lifetime', title: 'About to be reclaimed', text: '', at: end.checkedAt }],
  })
  renderView(<StatusCell session={session} />)
  expect(screen.getByText('Running')).toBeInTheDocument()
  await userEvent.hover(screen.getByText(/^Ends in 1m \d+s$/))
  expect(await screen.findByText(/^It reaches its maximum lifetime\. \d{4}-/)).toBeInTheDocument()
  expect(screen.queryByText('About to be reclaimed')).not.toBeInTheDocument()
})

it('writes the load of several devices for one of them, and how many are busy', async () => {
  const session = makeSession({ id: 's', spec: { image: 'a', resources: {}, accelerator: { devices: 4 } } })
  const gpus = [9900, 9800, 9200, 9400].map((util, i) => ({ device: `u${i}`, util }))
  const usage = {
    ...{ session: 's', at: '2026-01-02T03:04:10Z', cpu: 1, memory: 0, memLimit: 0 },
    ...{ netRx: 0, netTx: 0, diskRead: 0, diskWrite: 0, pids: 1, gpus },
  }
  const { client } = renderView(
    <>
      <AcceleratorCell session={session} />
      <UsageCell session={session} />
    </>,
  )
  await waitFor(() => expect(client.isFetching()).toBe(0))
  client.setQueryData(keys.latestUsage, { s: usage })
  const loads = await screen.findAllByText(/96 %/)
  expect(loads).toHaveLength(2)
  expect(screen.queryByText(/383 %/)).not.toBeInTheDocument()
  for (const load of loads) {
    await userEvent.hover(load)
    expect(await screen.findByText('Load: 3.8 of 4 GPUs busy')).toBeInTheDocument()
    await userEvent.unhover(load)
  }
})

it('offers no priority above that of a session whose machine moves none up, and says so', async () => {
  const onSet = vi.fn()
  const sessions = [makeSession({ id: 'a', agent: 'local', priority: 30 }), makeSession({ id: 'b', agent: 'cluster' })]
  renderView(<PriorityForm sessions={sessions} onSet={onSet} />, {
    known: {
      machines: [makeMachine(), makeMachine({ agent: 'cluster', engine: 'slurm', lacks: ['raise-priority'] })],
    },
  })
  expect(screen.getByText(/^A session cannot go before others on this machine/)).toBeInTheDocument()
  const field = screen.getByRole('spinbutton', { name: 'Priority' })
  expect(field).toHaveAttribute('aria-valuemax', '10')
  await userEvent.clear(field)
  await userEvent.type(field, '7{Enter}')
  expect(onSet).toHaveBeenCalledWith(7)
})
