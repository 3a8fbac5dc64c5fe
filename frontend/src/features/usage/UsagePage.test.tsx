import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import dayjs from 'dayjs'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeAccount } from '@/api/testing/session'
import type { Account, UsageReport } from '@/api/types.gen'
import * as save from '@/lib/save'
import { UsagePage } from './UsagePage'

const hour = 3_600_000
const row = (change: Partial<Account>) => makeAccount({ start: dayjs().startOf('day').format(), ...change })
const train = row({
  session: 's1',
  name: 'train-a',
  label: 'thesis',
  allocGpuMs: 2 * hour,
  busyGpuMs: hour,
  energyDynamic: 7.2e9,
  coveredMs: 95,
  gapMs: 5,
})
const idle = row({ kind: 'idle', energyIdle: 1.8e9 })
const report = (rows: Account[], change: Partial<UsageReport> = {}): UsageReport => ({
  from: '',
  to: '',
  by: 'session',
  bucket: 'day',
  rows,
  totals: rows,
  missing: [],
  ...change,
})
const usage = 'GET /api/v1/usage'

describe('the Usage page', () => {
  it('shows what sessions used and that the books balance', async () => {
    serve({ [usage]: report([idle, train]) })
    const { actions } = renderView(<UsagePage />)
    await userEvent.click(await screen.findByRole('button', { name: 'train-a' }))
    expect(actions.showDetail).toHaveBeenCalledWith('s1')
    expect(screen.getByRole('region', { name: 'Session totals' })).toHaveTextContent('GPU-hours21 h busy, 50 %')
    expect(screen.getByRole('region', { name: 'Device totals' })).toHaveTextContent('Measured by the devices2.5 kWh')
    expect(
      screen
        .getAllByRole('row')
        .map((r) => r.textContent)
        .filter((t) => /train-a|Idle/.test(t ?? ''))[0],
    ).toMatch(/^train-athesis/)
  })

  it('asks anew when it is summed up otherwise, and keeps that in the address', async () => {
    const sent = serve({ [usage]: report([train]) })
    const { where } = renderView(<UsagePage />)
    await screen.findByRole('button', { name: 'train-a' })
    await userEvent.click(screen.getByRole('radio', { name: 'Label' }).closest('label') as HTMLElement)
    expect(where()).toBe('/?by=label')
    await waitFor(() => expect(sent.filter((s) => s.path === '/api/v1/usage')).toHaveLength(2))
  })

  it('saves the same as CSV', async () => {
    const saved = vi.spyOn(save, 'saveUrl').mockImplementation(() => undefined)
    serve({ [usage]: report([train]) })
    renderView(<UsagePage />, { at: '/?from=2026-03-01&to=2026-03-02&label=thesis' })
    await screen.findByRole('button', { name: 'train-a' })
    await userEvent.click(screen.getByRole('button', { name: 'CSV' }))
    expect(saved).toHaveBeenCalledWith(
      'slipway-usage-2026-03-01-2026-03-02.csv',
      expect.stringContaining('/api/v1/usage.csv?from=2026-03-01&to=2026-03-02&bucket=day&by=session&label=thesis'),
    )
  })

  it('says which machines are not in the sums', async () => {
    serve({ [usage]: report([train], { missing: ['lab'] }) })
    renderView(<UsagePage />)
    expect(await screen.findByRole('status')).toHaveTextContent('lab')
  })

  it('explains itself where nothing was used', async () => {
    serve({ [usage]: report([]) })
    renderView(<UsagePage />)
    expect(await screen.findByText('No usage in this time range')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'CSV' })).toBeDisabled()
  })

  it('tells a failure with its hint and tries again', async () => {
    let tries = 0
    serve({
      [usage]: () =>
        ++tries === 1
          ? refusal(500, 'server_request_internal-error', 'The books cannot be read.', 'Look into the log.')
          : new Response(JSON.stringify(report([train]))),
    })
    renderView(<UsagePage />)
    expect(await screen.findByText('The books cannot be read.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }))
    expect(await screen.findByRole('button', { name: 'train-a' })).toBeInTheDocument()
  })
})
