import { screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeBoard, makeDevice, makeMachine } from '@/api/testing/session'
import type { DeviceBoard, DeviceHolder } from '@/api/types.gen'
import { GpusPage } from './GpusPage'

const GIB = 1024 ** 3
const train: DeviceHolder = {
  session: 's1',
  name: 'train-a',
  owner: 'me',
  share: 500,
  promised: 40 * GIB,
  memory: 30 * GIB,
  util: 6200,
}
const python: DeviceHolder = { name: 'python', owner: 'ann', pid: 4312, share: 0, promised: 0, memory: 11.2 * GIB }
const fresh = () => new Date().toISOString()
const busy = (change: Partial<DeviceBoard> = {}) =>
  makeBoard(
    [
      makeDevice({
        util: 8700,
        memoryUsed: 42 * GIB,
        power: 312_400,
        temperature: 64,
        free: 500,
        memoryFree: 28 * GIB,
        holders: [python, train],
      }),
    ],
    { at: fresh(), ...change },
  )

function show(boards: DeviceBoard[]) {
  serve({ 'GET /api/v1/machines/local/devices/GPU-0/history': [] })
  return renderView(<GpusPage />, { known: { devices: boards, machines: [makeMachine()] } })
}

describe('the GPUs page', () => {
  it('shows the load of a device and who holds what of it', async () => {
    const { actions } = show([busy()])
    const card = within(screen.getByRole('article', { name: 'GPU 0, Sim 80' }))
    for (const value of ['87 %', '0.5 of 1', '312 W', '64 °C']) expect(card.getByText(value)).toBeInTheDocument()
    const rows = card
      .getAllByRole('row')
      .slice(1)
      .map((r) => r.textContent)
    expect(rows).toEqual(['train-ame0.530 GiB / 40 GiB62 %', 'python pid 4312annnone11.2 GiB–'])
    expect(card.getByRole('img', { name: /train-a.*30 GiB.*python/ })).toBeInTheDocument()
    await userEvent.click(card.getByRole('button', { name: 'train-a' }))
    expect(actions.showDetail).toHaveBeenCalledWith('s1')
  })

  it('says of what a device does not tell that it is not told, never zero', () => {
    const silent = makeDevice()
    for (const key of ['util', 'power', 'temperature', 'memoryUsed'] as const) Reflect.deleteProperty(silent, key)
    show([makeBoard([silent], { at: fresh() })])
    expect(screen.getAllByText('unknown')).toHaveLength(4)
  })

  it('says who has the devices of a machine that lists none', () => {
    renderView(<GpusPage />, {
      known: {
        devices: [makeBoard([], { at: fresh() })],
        machines: [makeMachine({ hostname: 'login1', engine: 'slurm', lacks: ['devices'] })],
      },
    })
    expect(screen.getByText('The GPUs of login1 are not listed here')).toBeInTheDocument()
    expect(screen.getByText('Slurm gives sessions their GPUs. Each session shows what it has.')).toBeInTheDocument()
    expect(screen.queryByText(/No GPU found/)).not.toBeInTheDocument()
  })

  it('tells into what a device is cut up', () => {
    const cut = (uuid: string, profile: string, memory: number) => ({ uuid, profile, memory: memory * GIB, slices: 0 })
    show([
      makeBoard(
        [
          makeDevice({
            instances: [cut('MIG-1', '1g.10gb', 10), cut('MIG-2', '1g.10gb', 10), cut('MIG-3', '3g.40gb', 40)],
          }),
        ],
        { at: fresh() },
      ),
    ])
    expect(screen.getByText('MIG instances').parentElement).toHaveTextContent(
      'MIG instances2 × 1g.10gb 10 GiB1 × 3g.40gb 40 GiB',
    )
  })

  it('says that a device is lost and what to do', () => {
    show([
      busy({
        devices: [makeDevice({ lost: { kind: 'fallen', why: 'it fell off the bus', hint: 'Restart the computer.' } })],
      }),
    ])
    expect(screen.getByRole('status')).toHaveTextContent(
      'GPU lost: it fell off the bus. Slipway does not allocate it until it is back. Restart the computer.',
    )
  })

  it('never shows what is old as live', () => {
    show([busy({ at: new Date(Date.now() - 120_000).toISOString() })])
    expect(screen.getByRole('status')).toHaveTextContent('2 minutes ago')
    expect(screen.getByRole('article').className).toMatch(/stale/)
  })

  it('says which machine is not reached', () => {
    show([busy({ online: false })])
    expect(screen.getByRole('status')).toHaveTextContent('desk')
  })

  it('explains a machine without devices in the words of its reader', () => {
    show([makeBoard([], { text: 'No driver of a GPU is loaded.' })])
    expect(screen.getByText('No driver of a GPU is loaded.')).toBeInTheDocument()
    expect(screen.getByRole('link')).toHaveAttribute('href', '/settings')
  })

  it('tells a failure with its hint and tries again', async () => {
    let tries = 0
    serve({
      'GET /api/v1/devices': () =>
        ++tries === 1
          ? refusal(500, 'server_request_internal-error', 'The devices cannot be read.', 'Look into the log.')
          : new Response('[]'),
    })
    renderView(<GpusPage />)
    expect(await screen.findByText('The devices cannot be read.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }))
    expect(await screen.findByText('No GPU data yet')).toBeInTheDocument()
  })
})
