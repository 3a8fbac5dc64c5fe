import { screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine, makeSession } from '@/api/testing/session'
import type { ResourceSummary } from '@/api/types.gen'
import { ResourcePanels } from './ResourcePanels'

const GiB = 1024 ** 3
const amount = (cpu: number) => ({ cpu, memory: cpu * GiB, gpu: 0, vram: 0 })
const summary = (agent: string, group: string, change: Partial<ResourceSummary> = {}): ResourceSummary => ({
  agent,
  group,
  online: true,
  live: 1,
  total: amount(8),
  promised: amount(5),
  mine: amount(2),
  free: amount(3),
  load: amount(1),
  devices: [],
  ...change,
})
const near = makeMachine()
const lab = makeMachine({ agent: 'lab', hostname: 'lab-1', cpus: 64 })
const far = makeMachine({ agent: 'far', hostname: 'far-1', cpus: 32, online: false })
const all = [
  summary('local', 'default'),
  summary('lab', 'gpus', { total: amount(64), promised: amount(60), free: amount(4) }),
  summary('far', 'gpus', { online: false, total: amount(32) }),
]
const known = {
  machines: [near, lab, far],
  agents: [
    makeAgent(),
    makeAgent({ name: 'lab', group: 'gpus', local: false }),
    makeAgent({ name: 'far', group: 'gpus', local: false }),
  ],
  sessions: [makeSession({ agent: 'lab' })],
}

const cpuIn = (name: string | RegExp) =>
  within(within(screen.getByRole('region', { name })).getByRole('img', { name: /^CPU/ }))

beforeEach(() => localStorage.clear())

describe('ResourcePanels', () => {
  it('shows a machine, its group and the own sessions, each with used, free and total', async () => {
    serve({ 'GET /api/v1/resources': all })
    renderView(<ResourcePanels />, { known })
    const group = await screen.findByRole('region', { name: 'Group default' })
    expect(within(group).getByRole('img', { name: 'CPU: 5 of 8, 3 free' })).toBeInTheDocument()
    const mine = screen.getByRole('region', { name: 'My sessions' })
    expect(within(mine).getByRole('img', { name: 'CPU: 4 of 72, 7 free' })).toBeInTheDocument()
    expect(within(mine).getByText('2 live')).toBeInTheDocument()
    expect(screen.getByRole('region', { name: 'Resources of desk' })).toHaveTextContent('3of 8')
    expect(cpuIn('Resources of desk')).toBeDefined()
  })
  it('keeps which machine and which group are looked at', async () => {
    serve({ 'GET /api/v1/resources': all })
    const { unmount } = renderView(<ResourcePanels />, { known })
    await userEvent.click(await screen.findByRole('combobox', { name: 'Resource group' }))
    await userEvent.click(await screen.findByTitle('Group gpus'))
    const group = await screen.findByRole('region', { name: 'Group gpus' })
    expect(within(group).getByRole('img', { name: 'CPU: 60 of 64, 4 free' })).toBeInTheDocument()
    expect(within(group).getByText('1 of 2 machines')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('combobox', { name: 'Machine' }))
    await userEvent.click(await screen.findByTitle('Machine lab'))
    expect(await screen.findByRole('region', { name: 'Resources of lab-1' })).toHaveTextContent('4of 64')
    unmount()
    renderView(<ResourcePanels />, { known })
    expect(await screen.findByRole('region', { name: 'Group gpus' })).toBeInTheDocument()
    expect(screen.getByRole('region', { name: 'Resources of lab-1' })).toBeInTheDocument()
  })
  it('claims no nought of what a silent engine alone knows', async () => {
    serve({
      'GET /api/v1/resources': [
        summary('local', 'default', { total: amount(0), promised: amount(0), mine: amount(0), free: amount(0) }),
      ],
    })
    renderView(<ResourcePanels />, {
      known: { ...known, machines: [makeMachine({ cpus: 0, memory: 0 })], sessions: [] },
    })
    const machine = await screen.findByRole('region', { name: 'Resources of desk' })
    expect(machine).toHaveTextContent('Disk free')
    expect(machine).not.toHaveTextContent('CPU')
    expect(screen.queryByRole('region', { name: 'My sessions' })).not.toBeInTheDocument()
  })
  it('leaves out what is turned off', async () => {
    serve({ 'GET /api/v1/resources': all })
    renderView(<ResourcePanels />, { known })
    await screen.findByRole('region', { name: 'Group default' })
    await userEvent.click(screen.getByRole('button', { name: 'Choose panels' }))
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Resource group' }))
    expect(screen.queryByRole('region', { name: 'Group default' })).not.toBeInTheDocument()
    expect(screen.getByRole('region', { name: 'My sessions' })).toBeInTheDocument()
  })
  it('has no group beside a single machine, and says so where panels are chosen', async () => {
    serve({ 'GET /api/v1/resources': [all[0]] })
    renderView(<ResourcePanels />, { known: { machines: [near], agents: [makeAgent()], sessions: [] } })
    await screen.findByText('1 live')
    expect(screen.queryByRole('region', { name: /^Group/ })).not.toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Choose panels' }))
    expect(await screen.findByRole('checkbox', { name: 'Resource group' })).toBeDisabled()
  })
  it('tells what one may hold where that is limited, on each machine', async () => {
    const limit = { sessions: 4, sessionsHeld: 1, cpu: 0, memory: 16 * GiB, gpu: 1500 }
    serve({ 'GET /api/v1/resources': [all[0], { ...all[1], limit }] })
    const { unmount } = renderView(<ResourcePanels />, { known })
    const panel = within(await screen.findByRole('region', { name: 'My total resources limit' }))
    expect(panel.getByRole('img', { name: 'Sessions: 1 of 4, 3 free' })).toBeInTheDocument()
    expect(panel.getByRole('img', { name: /^Memory: 2 GiB of 16 GiB/ })).toBeInTheDocument()
    expect(panel.queryByRole('img', { name: /^CPU/ })).not.toBeInTheDocument() // it is not limited
    await userEvent.click(screen.getByRole('button', { name: 'Choose panels' }))
    expect(await screen.findByRole('checkbox', { name: 'My total resources limit' })).toBeChecked()
    unmount()
    serve({
      'GET /api/v1/resources': [
        { ...all[0], limit },
        { ...all[1], limit },
      ],
    })
    renderView(<ResourcePanels />, { known })
    expect(await screen.findByRole('region', { name: 'My total resources limit on lab' })).toBeInTheDocument()
    expect(screen.getByRole('region', { name: 'My total resources limit on local' })).toBeInTheDocument()
  })
  it('offers no limit where there is none', async () => {
    serve({ 'GET /api/v1/resources': all })
    renderView(<ResourcePanels />, { known })
    await screen.findByRole('region', { name: 'Group default' })
    await userEvent.click(screen.getByRole('button', { name: 'Choose panels' }))
    await screen.findByRole('checkbox', { name: 'My sessions' })
    expect(screen.queryByRole('checkbox', { name: 'My total resources limit' })).toBeNull()
  })
  it('shows what a machine told last where no summary comes', () => {
    serve({})
    renderView(<ResourcePanels />, { known: { machines: [near] } })
    expect(screen.getByRole('region', { name: 'Resources of desk' })).toHaveTextContent('6of 8')
  })
  it('folds to one line, and stays folded on this computer', async () => {
    serve({ 'GET /api/v1/resources': all })
    const { unmount } = renderView(<ResourcePanels />, { known })
    await screen.findByRole('region', { name: 'Group default' })
    await userEvent.click(screen.getByRole('button', { name: 'Fold the summary' }))
    unmount()
    renderView(<ResourcePanels />, { known })
    const strip = await screen.findByRole('region', { name: 'Free resources' })
    expect(await within(strip).findByText('2 of 3 machines')).toBeInTheDocument()
    expect(within(strip).getByRole('img', { name: 'CPU: 7 of 72 free' })).toBeInTheDocument()
    expect(strip).toHaveTextContent('1 running · 0 waiting')
    expect(screen.queryByRole('region', { name: 'My sessions' })).not.toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Show the whole summary' }))
    expect(screen.getByRole('region', { name: 'My sessions' })).toBeInTheDocument()
  })
})
