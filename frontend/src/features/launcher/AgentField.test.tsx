import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine } from '@/api/testing/session'
import type { Image, Operation } from '@/api/types.gen'
import { AgentField } from './AgentField'
import { EMPTY_DRAFT } from './draft'
import { imageElsewhere } from './images'
import { shownIssues } from './issueText'
import { SendImage } from './SendImage'

const lab = makeAgent({ name: 'lab', local: false, address: 'ssh://lab', group: 'gpus' })
const gone = makeAgent({
  name: 'gone',
  local: false,
  address: 'ssh://gone',
  connection: { ...lab.connection, state: 'down' },
})
const image = (agent: string): Image => ({
  id: 'sha256:a',
  refs: ['team/image:1'],
  size: 1048576,
  createdAt: '2026-01-01T00:00:00Z',
  arch: 'amd64',
  labels: {},
  usedBy: [],
  agent,
})

describe('the choice of a machine', () => {
  afterEach(() => document.body.replaceChildren())

  it('offers groups and agents with what is free, and none that is not reached', async () => {
    serve({ 'GET /api/v1/resources': [] })
    const change = vi.fn()
    renderView(<AgentField draft={EMPTY_DRAFT} issues={shownIssues([], new Set())} change={change} />, {
      known: {
        agents: [makeAgent(), lab, gone],
        machines: [makeMachine(), makeMachine({ agent: 'lab' }), makeMachine({ agent: 'gone', online: false })],
      },
    })
    await userEvent.click(screen.getByRole('combobox', { name: 'Machine' }))
    expect((await screen.findByTitle('gone')).getAttribute('class')).toContain('disabled')
    expect(screen.getByTitle('lab')).toHaveTextContent('6 CPUs, 14 GiB free')
    await userEvent.click(screen.getByTitle('lab'))
    expect(change.mock.lastCall?.[0](EMPTY_DRAFT)).toMatchObject({ agent: 'lab', group: '' })
  })
  it('may be left to a resource group', async () => {
    serve({ 'GET /api/v1/resources': [] })
    const change = vi.fn()
    renderView(<AgentField draft={EMPTY_DRAFT} issues={shownIssues([], new Set())} change={change} />, {
      known: { agents: [makeAgent(), lab], machines: [makeMachine(), makeMachine({ agent: 'lab' })] },
    })
    await userEvent.click(screen.getByRole('combobox', { name: 'Machine' }))
    await userEvent.click(await screen.findByTitle('gpus'))
    expect(change.mock.lastCall?.[0](EMPTY_DRAFT)).toMatchObject({ agent: '', group: 'gpus' })
  })
})

describe('an image that the chosen machine lacks', () => {
  it('is looked for elsewhere, on this computer first', () => {
    const at = (agent: string, ...on: string[]) => imageElsewhere('team/image:1', on.map(image), agent, 'local')?.agent
    expect([
      at('lab', 'attic', 'local'),
      at('lab', 'attic'),
      at('lab', 'lab', 'local'),
      at('', 'local'),
      at('lab'),
    ]).toEqual(['local', 'attic', undefined, undefined, undefined])
  })
  it('is sent from this computer when asked', async () => {
    const sent = serve({
      'POST /api/v1/images/send': {
        id: 'op1',
        kind: 'image-send',
        subject: 'lab',
        state: 'running',
        steps: [],
        startedAt: '2026-01-02T03:04:05Z',
        revision: 1,
      },
    })
    renderView(<SendImage image="team/image:1" to="lab" images={[image('local')]} onArrived={() => {}} />, {
      known: { agents: [makeAgent(), lab], operations: [] },
    })
    await userEvent.click(screen.getByRole('button', { name: 'Send it from this computer' }))
    await waitFor(() => expect(sent[0]?.body).toEqual({ image: 'team/image:1', from: 'local', to: 'lab' }))
    expect(await screen.findByRole('button', { name: 'Cancel' })).toBeInTheDocument()
  })
  it('is chosen under the name that it arrived with', async () => {
    const operation: Operation = {
      id: 'op1',
      kind: 'image-send',
      subject: 'team/image:1',
      agent: 'lab',
      state: 'running',
      steps: [],
      startedAt: '2026-01-02T03:04:05Z',
      revision: 1,
    }
    serve({
      'POST /api/v1/images/send': {
        ...operation,
        revision: 2,
        state: 'done',
        image: 'slipway-custom/bob/team/image:1',
      },
    })
    const arrived = vi.fn()
    renderView(<SendImage image="team/image:1" to="lab" images={[image('local')]} onArrived={arrived} />, {
      known: { agents: [makeAgent(), lab], operations: [] },
    })
    await userEvent.click(screen.getByRole('button', { name: 'Send it from this computer' }))
    await waitFor(() => expect(arrived).toHaveBeenCalledWith('slipway-custom/bob/team/image:1'))
  })
})
