import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeService } from '@/api/testing/service'
import { makeAgent } from '@/api/testing/session'
import type { ScalingRule, Service } from '@/api/types.gen'
import { NewServicePage } from './NewServicePage'
import { FIRST_RULE, ruleDraftOf, ruleFault, ruleOf } from './rules'
import { ServiceRules } from './ServiceRules'

const byServer: ScalingRule = {
  metricSource: 'framework',
  metricName: 'vllm:num_requests_waiting',
  scaleUpThreshold: 10,
  scaleDownThreshold: 0,
  stepSize: 2,
  window: '30s',
  cooldown: '600s',
  minReplicas: 2,
  maxReplicas: 8,
}

describe('a rule', () => {
  it('is the same after it was edited', () => {
    expect(ruleOf(ruleDraftOf(byServer))).toEqual(byServer)
    expect(ruleOf(ruleDraftOf({ metricSource: 'device', metricName: 'mem', cooldown: '10m' }))).toEqual({
      metricSource: 'device',
      metricName: 'mem',
      cooldown: '600s',
    })
  })

  it('is checked before the machine is asked', () => {
    expect(ruleFault(FIRST_RULE)).toBeUndefined()
    expect(ruleFault({ ...FIRST_RULE, metric: 'a b' })).toBe('metric')
    expect(ruleFault({ ...FIRST_RULE, up: null, down: null })).toBe('threshold')
    expect(ruleFault({ ...FIRST_RULE, down: 4 })).toBe('order')
    expect(ruleFault({ ...FIRST_RULE, min: 5 })).toBe('limits')
  })
})

const change = 'PATCH /api/v1/services/llama-chat'

function show(service: Partial<Service>) {
  const sent = serve({ [change]: makeService(service) })
  renderView(<ServiceRules service={makeService(service)} />)
  return sent
}

describe('the rules of a service', () => {
  it('are shown with what they do now', () => {
    const device: ScalingRule = { metricSource: 'device', metricName: 'gpu_util', scaleDownThreshold: 20 }
    show({
      rules: [byServer, device],
      scaling: { target: 2, rules: [{ does: 'missing' }, { does: 'below', value: 12.345 }] },
    })
    const [first, second] = screen.getAllByRole('listitem')
    within(first as HTMLElement).getByText('No value')
    within(first as HTMLElement).getByText('Changes nothing')
    within(first as HTMLElement).getByText(
      'Above 10: adds 2 replicas, up to 8. Below 0 for 10 min 30 s: removes 1 replica, down to 2.',
    )
    within(second as HTMLElement).getByText('Now 12.35%')
    within(second as HTMLElement).getByText('Removes a replica')
    expect(screen.queryByRole('button', { name: 'Save rules' })).toBeNull()
  })

  it('are saved together, once none is wrong', async () => {
    const sent = show({ rules: [byServer], scaling: { target: 1, rules: [{ does: 'within', value: 3 }] } })
    await userEvent.click(screen.getByRole('button', { name: 'Add a rule' }))
    expect(screen.queryByText('Now 3')).toBeNull()
    const up = screen.getByRole('spinbutton', { name: 'Add above, Rule 2' })
    await userEvent.clear(up)
    await userEvent.type(up, '1')
    await userEvent.click(screen.getByRole('button', { name: 'Save rules' }))
    screen.getByText('Remove below must be less than add above.')
    expect(sent).toHaveLength(0)
    await userEvent.clear(screen.getByRole('spinbutton', { name: 'Remove below, Rule 2' }))
    await userEvent.click(screen.getByRole('button', { name: 'Save rules' }))
    const added = { metricSource: 'router', metricName: 'outstanding', scaleUpThreshold: 1, maxReplicas: 4 }
    await waitFor(() => expect(sent[0]?.body).toEqual({ rules: [byServer, added] }))
  })

  it('are removed, and stay when the change is cancelled', async () => {
    const sent = show({ rules: [byServer] })
    await userEvent.click(screen.getByRole('button', { name: 'Remove Rule 1' }))
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    await userEvent.click(screen.getByRole('button', { name: 'Remove Rule 1' }))
    await userEvent.click(screen.getByRole('button', { name: 'Save rules' }))
    await waitFor(() => expect(sent.map((one) => one.body)).toEqual([{ rules: [] }]))
  })
})

describe('the form of a new service', () => {
  beforeEach(() => {
    HTMLElement.prototype.scrollIntoView = vi.fn()
  })

  it('sends rules, and that it may sleep', async () => {
    const post = 'POST /api/v1/services'
    const sent = serve({
      'GET /api/v1/services': [],
      'GET /api/v1/folders': [],
      'GET /api/v1/resources': [],
      [post]: makeService({ name: 'llama' }),
    })
    renderView(<NewServicePage />, {
      at: '/services/new?runtime=nim',
      known: { agents: [makeAgent()], devices: [] },
    })
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'llama')
    await userEvent.click(screen.getByRole('switch', { name: 'Sleep to make room' }))
    const card = within(screen.getByRole('region', { name: 'Scaling' }))
    await userEvent.click(card.getByRole('button', { name: 'Add a rule' }))
    const max = card.getByRole('spinbutton', { name: 'Maximum, Rule 1' })
    const min = card.getByRole('spinbutton', { name: 'Minimum, Rule 1' })
    await userEvent.type(min, '6')
    await userEvent.click(screen.getByRole('button', { name: 'Create service' }))
    card.getByText('The maximum must be at least the minimum.')
    await userEvent.clear(max)
    await userEvent.click(screen.getByRole('button', { name: 'Create service' }))
    await waitFor(() =>
      expect(sent.find((s) => s.method === 'POST' && s.path === '/api/v1/services')?.body).toMatchObject({
        maySleep: true,
        rules: [{ metricName: 'outstanding', scaleUpThreshold: 4, scaleDownThreshold: 1, minReplicas: 6 }],
      }),
    )
  })
})
