import { screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { makeAccount } from '@/api/testing/session'
import type { Account } from '@/api/types.gen'
import { AccountsSection } from './AccountsSection'

const hour = 3_600_000
const account = (change: Partial<Account>) => makeAccount({ session: 's', coveredMs: hour, ...change })

it('shows no more busy than allocated, what a share used on top apart from it, and devices in order', async () => {
  const gpu = (index: number, busy: number): Account =>
    account({ device: `u${index}`, deviceName: `GPU ${index} · Sim`, allocGpuMs: 0.5 * hour, busyGpuMs: busy * hour })
  serve({
    'GET /api/v1/usage': {
      rows: [account({ cpuMs: 2.5 * hour, allocCpuMs: 2 * hour }), gpu(10, 0.25), gpu(2, 0.75)],
      totals: [],
      missing: [],
      by: '',
    },
  })
  renderView(<AccountsSection session={makeSession({ id: 's' })} />)
  const rows = (await screen.findAllByRole('row')).slice(1).map((row) => row.textContent)
  expect(rows[0]).toMatch(/^GPU 2 · Sim0\.5 h0\.5 h \+ 0\.25 h/)
  expect(rows[1]).toMatch(/^GPU 10 · Sim0\.5 h0\.25 h0 GiB·h/)
  expect(screen.getByTitle('0.25 h more than its share, in time that others left free')).toBeInTheDocument()
  expect(screen.getByText('CPU busy').nextElementSibling).toHaveTextContent('2 h 100 % + 0.5 h')
})

it('says of a device that nothing measures only how long it was allocated', async () => {
  serve({
    'GET /api/v1/usage': {
      rows: [account({ device: 'n1/gpu0', allocGpuMs: 2 * hour, coveredMs: 0, gapMs: 2 * hour })],
      totals: [],
      missing: [],
      by: '',
    },
  })
  renderView(<AccountsSection session={makeSession({ id: 's' })} />)
  const cell = await screen.findByText('Nothing measures this device. Only the allocated time is known.')
  expect(cell.parentElement).toHaveTextContent(/^n1\/gpu02 hNothing/)
})
