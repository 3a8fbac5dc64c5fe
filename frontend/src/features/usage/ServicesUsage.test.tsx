import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeServiceUsage } from '@/api/testing/session'
import type { ServiceReport, ServiceUsage } from '@/api/types.gen'
import * as save from '@/lib/save'
import { UsagePage } from './UsagePage'

const of = (change: Partial<ServiceUsage>) =>
  makeServiceUsage({ agent: 'lab', owner: 'ada', service: 'llama', ...change })
const llama = of({
  requests: 1250,
  answered: 1240,
  failed: 7,
  cut: 3,
  promptTokens: 48_000,
  completionTokens: 144_000,
  firstWord: { p50Ms: 180, p99Ms: 1400 },
  allocGpuMs: 9 * 3_600_000,
  energyDynamic: 1.08e9,
  energyIdle: 3.6e8,
  whPerThousandTokens: 2.7778,
})
const revision = of({ ...llama, revision: 2 })
const editor = of({ requests: 1200, completionTokens: 140_000, tokenName: 'editor' })
const anyone = of({ requests: 50, completionTokens: 4000 })
const elsewhere = of({ owner: 'bob', requests: 9, tokenName: 'not mine' })
const report = (by: string, rows: ServiceUsage[], change: Partial<ServiceReport> = {}): ServiceReport => ({
  from: '',
  to: '',
  by,
  bucket: '',
  rows,
  total: llama,
  missing: [],
  ...change,
})
const usage = 'GET /api/v1/usage/services'
const serveBy = (rows: Record<string, ServiceUsage[]>) =>
  serve({
    [usage]: (_body: unknown, query: URLSearchParams) => {
      const by = query.get('by') ?? ''
      return new Response(JSON.stringify(report(by, rows[by] ?? [])))
    },
  })
const at = '/?view=services&from=2026-03-01&to=2026-03-02'

describe('the Usage page of services', () => {
  it('shows what was asked of them and what that took', async () => {
    serveBy({ service: [llama] })
    renderView(<UsagePage />, { at })
    const row = await screen.findByRole('row', { name: /llama/ })
    expect(row).toHaveTextContent('llama lab · ada1,2501048,000144K180 ms1.4 s9 h400 Wh2.78')
    expect(screen.getByRole('region', { name: 'Service totals' })).toHaveTextContent('Wh per 1,000 tokens2.78 Wh')
    expect(screen.queryByRole('textbox', { name: 'Project label' })).toBeNull()
  })

  it('opens a service by its revisions and tokens, whose energy is not known', async () => {
    serveBy({ service: [llama], revision: [revision], token: [editor, anyone, elsewhere] })
    renderView(<UsagePage />, { at })
    await userEvent.click(await screen.findByText('llama'))
    const texts = async (name: string) => (await screen.findByText(name)).closest('tr')?.textContent
    expect(await texts('Revision 2')).toMatch(/2.78$/)
    expect(await texts('Token editor')).toMatch(/^Token editor1,200.*–––$/)
    expect(await texts('Without a token')).toMatch(/^Without a token50/)
    expect(screen.queryByText('Token not mine')).toBeNull()
  })

  it('saves each revision and token of each day as CSV', async () => {
    const saved = vi.spyOn(save, 'saveUrl').mockImplementation(() => undefined)
    serveBy({ service: [llama] })
    renderView(<UsagePage />, { at })
    await screen.findByText('llama')
    await userEvent.click(screen.getByRole('button', { name: 'CSV' }))
    expect(saved).toHaveBeenCalledWith(
      'slipway-services-2026-03-01-2026-03-02.csv',
      expect.stringContaining('/api/v1/usage/services.csv?from=2026-03-01&to=2026-03-02&bucket=day'),
    )
  })

  it('is reached by its tab, and explains itself where nothing was asked', async () => {
    serve({ 'GET /api/v1/usage': { rows: [], totals: [], missing: [] }, [usage]: report('service', []) })
    const { where } = renderView(<UsagePage />)
    await userEvent.click(screen.getByRole('tab', { name: 'Services' }))
    expect(await screen.findByText('No service was used in this time range')).toBeInTheDocument()
    expect(where()).toBe('/?view=services')
    expect(screen.getByRole('button', { name: 'CSV' })).toBeDisabled()
  })

  it('says which machines are missing, and why there is nothing', async () => {
    serve({ [usage]: report('service', [llama], { missing: ['desk'] }) })
    const { unmount } = renderView(<UsagePage />, { at })
    expect(await screen.findByRole('status')).toHaveTextContent('desk')
    unmount()
    serve({ [usage]: () => refusal(500, 'server_request_internal-error', 'The books cannot be read.', 'See the log.') })
    renderView(<UsagePage />, { at })
    expect(await screen.findByText('The books cannot be read.')).toBeInTheDocument()
  })
})
