import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeBoard, makeDevice, makeSession } from '@/api/testing/session'
import type { Accelerator, Session } from '@/api/types.gen'
import { smallerRequests } from './smaller'
import { WaitHelp } from './WaitHelp'

const GIB = 1024 ** 3
const spec = (accelerator: Accelerator, cluster?: number): Session['spec'] => ({
  ...makeSession().spec,
  accelerator,
  ...(cluster ? { cluster } : {}),
})
const waiting = (accelerator: Accelerator, cluster?: number) =>
  makeSession({ id: 'w', name: 'sweep-b', status: 'PENDING', spec: spec(accelerator, cluster) })

describe('smallerRequests', () => {
  const free = (...shares: number[]) =>
    shares.map((share, i) =>
      makeDevice({ uuid: `GPU-${i}`, index: i, free: share, memoryFree: (share * 80 * GIB) / 1000 }),
    )
  it.each<[string, Session, number[], [Accelerator, boolean][]]>([
    [
      'several devices',
      waiting({ devices: 4 }),
      [1000, 0, 1000, 1000],
      [
        [{ devices: 3 }, true],
        [{ devices: 2 }, true],
        [{ devices: 1 }, true],
      ],
    ],
    [
      'several devices of which none is free',
      waiting({ devices: 4 }),
      [0, 500],
      [
        [{ devices: 2 }, false],
        [{ devices: 1 }, false],
      ],
    ],
    [
      'one device',
      waiting({ devices: 1 }),
      [300, 0],
      [
        [{ shares: 500 }, false],
        [{ shares: 300 }, true],
        [{ shares: 100 }, true],
      ],
    ],
    [
      'a share',
      waiting({ shares: 700 }),
      [200],
      [
        [{ shares: 300 }, false],
        [{ shares: 200 }, true],
        [{ shares: 100 }, true],
      ],
    ],
    ['the least share', waiting({ shares: 100 }), [0], []],
    [
      'memory',
      waiting({ memory: 40 * GIB }),
      [300],
      [
        [{ memory: 24 * GIB }, true],
        [{ memory: 20 * GIB }, true],
        [{ memory: GIB }, true],
      ],
    ],
    ['instances', waiting({ profile: '1g.10gb', count: 2 }), [0], [[{ profile: '1g.10gb', count: 1 }, false]]],
    ['a cluster', waiting({ devices: 2 }, 2), [1000], [[{ devices: 1 }, false]]],
    ['nothing', waiting({}), [0], []],
  ])('for %s', (_name, session, shares, wanted) =>
    expect(smallerRequests(session, free(...shares), 100).map((one) => [one.request, one.free])).toEqual(wanted),
  )
  it('calls nothing free whose memory another program uses', () => {
    const used = makeDevice({ free: 500, memoryFree: 10 * GIB })
    expect(smallerRequests(waiting({ shares: 700 }), [used], 100).map((one) => one.free)).toEqual([false, false, true])
  })
  it('leaves out what is lost', () => {
    const lost = makeDevice({ lost: { kind: 'fallen', why: 'it fell off the bus', hint: '' } })
    expect(smallerRequests(waiting({ shares: 500 }), [lost], 100).some((one) => one.free)).toBe(false)
  })
})

describe('WaitHelp', () => {
  const known = { sessions: [], devices: [makeBoard([makeDevice({ free: 300 })])] }
  it('lets a session ask for less', async () => {
    const session = waiting({ devices: 1 })
    const sent = serve({ 'PATCH /api/v1/sessions/w': { ...session, spec: spec({ shares: 300 }), revision: 2 } })
    renderView(<WaitHelp session={session} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Use a smaller share' }))
    await userEvent.click(await screen.findByRole('button', { name: '0.3 GPUfree now' }))
    expect(await screen.findByText('sweep-b asks for 0.3 GPU now.')).toBeInTheDocument()
    expect(sent.filter((s) => s.method === 'PATCH').map((s) => s.body)).toEqual([{ accelerator: { shares: 300 } }])
  })
  it.each<[string, Session]>([
    ['there is none', waiting({})],
    [
      'memory is lacking',
      {
        ...waiting({ devices: 1 }),
        wait: { code: 'scheduler_wait_resources', message: '', position: 1, said: [{ say: 'fewMemory' }] },
      },
    ],
  ])('offers no smaller share where %s', (_name, session) => {
    serve({})
    renderView(<WaitHelp session={session} />, { known })
    expect(screen.getByRole('button', { name: 'Remind me' })).toBeInTheDocument()
    expect(screen.queryByRole('button', { name: 'Use a smaller share' })).not.toBeInTheDocument()
  })
  it('sets a reminder and takes it back, and says when nothing can show it', async () => {
    const session = waiting({})
    const sent = serve({ 'PATCH /api/v1/sessions/w': session, 'GET /api/v1/notifier': { desktop: false } })
    const before = renderView(<WaitHelp session={session} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Remind me' }))
    expect(await screen.findByText(/Neither the desktop nor this browser/)).toBeInTheDocument()
    before.unmount()
    renderView(<WaitHelp session={{ ...session, reminder: true }} />, { known })
    await userEvent.click(screen.getByRole('button', { name: 'Reminder set', pressed: true }))
    await waitFor(() =>
      expect(sent.filter((s) => s.method === 'PATCH').map((s) => s.body)).toEqual([
        { reminder: true },
        { reminder: false },
      ]),
    )
  })
  it('offers nothing while its machine is not reached', () => {
    renderView(<WaitHelp session={{ ...waiting({ devices: 1 }), lastHeard: '2026-01-02T00:00:00Z' }} />, { known })
    expect(screen.queryByRole('button')).not.toBeInTheDocument()
  })
})
