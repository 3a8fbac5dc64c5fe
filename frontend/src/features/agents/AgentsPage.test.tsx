import { act, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { applyEvent } from '@/api/book'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine } from '@/api/testing/session'
import type { Agent, Operation, Prompt, Question } from '@/api/types.gen'
import { AgentsPage } from './AgentsPage'

const local = makeAgent()
const lab = makeAgent({
  name: 'lab',
  local: false,
  address: 'ssh://ada@lab',
  group: 'gpus',
  live: 2,
  version: '0.1.0',
  upgrade: '0.2.0',
  role: 'user',
  connection: {
    state: 'connected',
    since: '2026-01-02T03:04:05Z',
    lastHeard: '2026-01-02T03:04:05Z',
    rttMs: 38.4,
    transport: 'ssh',
    carriers: 2,
    waits: '',
  },
})
const down: Agent = {
  ...lab,
  connection: {
    ...lab.connection,
    state: 'down',
    waits: 'It is tried again.',
    error: { code: 'agent_connect_unavailable', message: 'lab does not answer.', hint: 'Is it on?' },
  },
}
const machines = [makeMachine(), makeMachine({ agent: 'lab', hostname: 'lab-1' })]
const operation = (change: Partial<Operation> = {}): Operation => ({
  id: 'op1',
  kind: 'agent-add',
  subject: 'ssh://ada@lab',
  state: 'running',
  steps: [],
  startedAt: '2026-01-02T03:04:05Z',
  revision: 1,
  ...change,
})

let seq = 0
function open(at: string, agents: Agent[] = [local, lab], answers: Parameters<typeof serve>[0] = {}) {
  const sent = serve({ 'GET /api/v1/resources': [], 'GET /api/v1/agents/lab/clients': [], ...answers })
  const view = renderView(<AgentsPage />, {
    at,
    path: at.startsWith('/agents/') ? '/agents/:name' : '*',
    known: { agents, machines, operations: [] },
  })
  return {
    ...view,
    sent,
    tell: (event: { agent?: Agent; operation?: Operation }) =>
      act(() => applyEvent(view.client, { epoch: 'e', seq: ++seq, ...event })),
  }
}
const card = () => within(screen.getByRole('article', { name: 'lab' }))

describe('the Agents page', () => {
  afterEach(() => document.body.replaceChildren())

  it('shows each agent by resource group with how it is reached', () => {
    open('/')
    expect(screen.getByText('2 of 2 connected')).toBeInTheDocument()
    expect(screen.getByRole('heading', { name: 'gpus' })).toBeInTheDocument()
    expect(card().getByText('Connected')).toBeInTheDocument()
    expect(card().getByText('38 ms latency')).toBeInTheDocument()
    expect(card().getByText('2 live sessions')).toBeInTheDocument()
  })

  it('says why one is not reached as soon as that is told, and tries again when asked', async () => {
    const { tell, sent } = open('/', [local, lab], {
      'POST /api/v1/agents/lab/reconnect': operation({ kind: 'agent-reconnect', subject: 'lab' }),
    })
    tell({ agent: down })
    await userEvent.click(await card().findByRole('button', { name: 'Retry now' }))
    expect(card().getByText('lab does not answer.')).toBeInTheDocument()
    expect(card().queryByText('38 ms latency')).not.toBeInTheDocument()
    await waitFor(() => expect(sent.some((s) => s.path.endsWith('/lab/reconnect'))).toBe(true))
    expect(await card().findByText('Reconnect lab')).toBeInTheDocument()
  })

  it('says that one waits for a person, and a click has it ask', async () => {
    const asks: Agent = {
      ...down,
      connection: {
        ...down.connection,
        state: 'question',
        error: { code: 'agent_connect_asks', message: 'as the program says it', hint: '' },
      },
    }
    const { sent } = open('/', [local, asks], {
      'POST /api/v1/agents/lab/reconnect': operation({ kind: 'agent-reconnect', subject: 'lab' }),
    })
    expect(card().getByText('The login on this machine asks for your input.')).toBeInTheDocument()
    expect(card().queryByRole('button', { name: 'Retry now' })).not.toBeInTheDocument()
    await userEvent.click(card().getByRole('button', { name: 'Connect' }))
    await waitFor(() => expect(sent.some((s) => s.path.endsWith('/lab/reconnect'))).toBe(true))
  })

  it('says that one is not trustworthy as soon as that is told, and what it sent', async () => {
    const { tell } = open('/agents/lab')
    expect(screen.queryByText('Not trustworthy: sends invalid data')).not.toBeInTheDocument()
    const at = '2026-01-02T03:04:05Z'
    tell({
      agent: {
        ...lab,
        untrusted: {
          error: {
            code: 'agent_reply_invalid',
            message: 'The agent lab sent invalid data: id: "x" is not the id of a session.',
          },
          since: at,
          last: at,
          count: 3,
        },
      },
    })
    expect(await screen.findAllByText('Not trustworthy: sends invalid data')).toHaveLength(2)
    expect(screen.getByText(/"x" is not the id of a session/)).toBeInTheDocument()
    expect(screen.getByText('agent_reply_invalid')).toBeInTheDocument()
  })

  it('offers an upgrade only where there is one', async () => {
    const { sent } = open('/', [local, lab], {
      'POST /api/v1/agents/lab/upgrade': operation({ kind: 'agent-upgrade', subject: 'lab' }),
    })
    await userEvent.click(card().getByRole('button', { name: 'Upgrade to 0.2.0' }))
    await waitFor(() => expect(sent.some((s) => s.path.endsWith('/lab/upgrade'))).toBe(true))
    expect(
      within(screen.getByRole('article', { name: 'local' })).queryByRole('button', { name: /Upgrade/ }),
    ).not.toBeInTheDocument()
  })

  it('invites to add one while there is only this computer, and tells a failure with its hint', async () => {
    open('/', [local])
    expect(screen.getByText('No other machines yet')).toBeInTheDocument()
    serve({
      'GET /api/v1/agents': () =>
        refusal(503, 'agent_call_unavailable', 'The agents cannot be read.', 'Look at the log.'),
    })
    renderView(<AgentsPage />)
    expect(await screen.findByText('Look at the log.')).toBeInTheDocument()
  })
})

describe('adding an agent', () => {
  afterEach(() => document.body.replaceChildren())

  it('shows the steps, asks for a password that is not shown, and sends it once', async () => {
    const prompt: Prompt = { id: 'p1', kind: 'password', text: "ada@lab's password:", secret: true, again: false }
    const { tell, sent } = open('/?add=1', [local], {
      'POST /api/v1/agents': operation(),
      'POST /api/v1/operations/op1/answer': operation({ revision: 3 }),
      'POST /api/v1/operations/op1/cancel': operation({ revision: 3 }),
    })
    await userEvent.click(screen.getByRole('button', { name: 'Add' }))
    expect(screen.getByText('Enter an address.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('textbox', { name: 'Address' }))
    await userEvent.paste('ssh://ada@lab')
    await userEvent.click(screen.getByRole('button', { name: 'Add' }))
    await waitFor(() =>
      expect(sent.find((s) => s.path === '/api/v1/agents' && s.method === 'POST')?.body).toEqual({
        address: 'ssh://ada@lab',
      }),
    )
    tell({
      operation: operation({
        state: 'waiting',
        revision: 2,
        prompt,
        steps: [
          {
            name: 'docker',
            title: 'Docker',
            state: 'failed',
            detail: 'You may not use it.',
            remedy: 'sudo usermod -aG docker ada',
          },
        ],
      }),
    })
    expect(await screen.findByText('sudo usermod -aG docker ada')).toBeInTheDocument()
    const field = screen.getByLabelText('Password')
    expect(field).toHaveAttribute('type', 'password')
    await userEvent.click(field)
    await userEvent.paste('geheim')
    await userEvent.click(screen.getByRole('button', { name: 'Continue' }))
    await waitFor(() =>
      expect(sent.find((s) => s.path.endsWith('/op1/answer'))?.body).toEqual({ prompt: 'p1', text: 'geheim' }),
    )
    tell({ operation: operation({ revision: 4, progress: { done: 1048576, total: 4194304, rate: 524288, left: 6 } }) })
    expect(await screen.findByText('1 MiB of 4 MiB · 512 KiB/s · 6 s left')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    await waitFor(() => expect(sent.some((s) => s.path.endsWith('/op1/cancel'))).toBe(true))
    tell({ operation: operation({ revision: 5, state: 'done', agent: 'lab' }) })
    expect(await screen.findByRole('button', { name: 'Show lab' })).toBeInTheDocument()
  })
})

describe('adding an agent that fails', () => {
  afterEach(() => document.body.replaceChildren())

  it('says why once, where it happened, with the code', async () => {
    const { tell } = open('/?add=1', [local], { 'POST /api/v1/agents': operation() })
    await userEvent.click(screen.getByRole('textbox', { name: 'Address' }))
    await userEvent.paste('ssh://ada@lab')
    await userEvent.click(screen.getByRole('button', { name: 'Add' }))
    const why = 'No ssh server answers.'
    tell({
      operation: operation({
        state: 'failed',
        revision: 2,
        steps: [{ name: 'probe', title: 'Look', state: 'failed', detail: why, remedy: 'Check the port.' }],
        error: { code: 'agent_connect_unavailable', message: why, hint: 'Check the port.' },
      }),
    })
    expect(await screen.findByText('agent_connect_unavailable')).toBeInTheDocument()
    expect(screen.getAllByText(why)).toHaveLength(1)
    expect(screen.getAllByText('Check the port.')).toHaveLength(1)
  })
})

describe('one agent', () => {
  afterEach(() => document.body.replaceChildren())

  it('that shows another key is a question with both keys, and nothing is accepted silently', async () => {
    const question: Question = {
      kind: 're-keyed',
      text: 'lab shows another key.',
      pinned: 'aaaa',
      found: 'bbbb',
      asked: '2026-01-02T03:04:05Z',
    }
    const { sent } = open(
      '/agents/lab',
      [local, { ...down, question, connection: { ...down.connection, state: 'question' } }],
      { 'POST /api/v1/agents/lab/answer': lab },
    )
    const box = within(await screen.findByRole('alertdialog'))
    expect(box.getByText('aaaa')).toBeInTheDocument()
    await userEvent.click(box.getByRole('button', { name: 'Accept the new key' }))
    await waitFor(() =>
      expect(sent.find((s) => s.path.endsWith('/answer'))?.body).toEqual({ accept: true, found: 'bbbb' }),
    )
  })

  it('says what becomes of its sessions before it is removed', async () => {
    const { sent } = open('/agents/lab', [local, lab], {
      'POST /api/v1/agents/lab/remove': operation({ kind: 'agent-remove', subject: 'lab' }),
    })
    await userEvent.click(await screen.findByRole('button', { name: 'Remove' }))
    expect(await screen.findByText(/Its 2 live sessions keep running/)).toBeInTheDocument()
    await userEvent.click(screen.getByRole('radio', { name: /Also uninstall/ }))
    expect(await screen.findByText('2 live sessions will be terminated.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Uninstall and remove' }))
    await waitFor(() => expect(sent.find((s) => s.path.endsWith('/remove'))?.body).toEqual({ uninstall: true }))
  })

  it('that one rules says who may hold how much, and changes it', async () => {
    const ruled: Agent = { ...lab, role: 'admin' }
    const { sent } = open('/agents/lab', [local, ruled], {
      'GET /api/v1/agents/lab/limits': {
        limits: { default: { sessions: 2, memory: 8 * 1024 ** 3, gpu: 500, folders: ['/data'] } },
      },
      'PUT /api/v1/agents/lab/limits/ann': undefined,
    })
    await userEvent.click(screen.getByRole('tab', { name: 'People and computers' }))
    const limits = within(await screen.findByRole('region', { name: 'Limits' }))
    expect(await limits.findByText('2 sessions · 8 GiB memory · 0.5 GPU')).toBeInTheDocument()
    expect(limits.getByText('Everyone else')).toBeInTheDocument()
    await userEvent.click(limits.getByRole('button', { name: 'Add a limit' }))
    expect(await screen.findByText('Limit what a person can use')).toBeInTheDocument()
    await userEvent.type(screen.getByLabelText('Person'), 'default')
    expect(await screen.findByText('This person already has limits. Edit those instead.')).toBeInTheDocument()
    expect(screen.getByText('Save', { selector: '.ant-modal button span' }).closest('button')).toBeDisabled()
    await userEvent.clear(screen.getByLabelText('Person'))
    await userEvent.type(screen.getByLabelText('Person'), 'ann')
    await userEvent.type(screen.getByLabelText('Memory'), '1.5')
    await userEvent.type(screen.getByLabelText('GPUs'), '0.3')
    await userEvent.click(screen.getByText('Save', { selector: '.ant-modal button span' }))
    await waitFor(() =>
      expect(sent.find((s) => s.method === 'PUT')?.body).toEqual({ memory: 1.5 * 1024 ** 3, gpu: 300 }),
    )
  })

  it('that one rules says who did what, the newest first, by any word', async () => {
    const entry = { at: '2026-01-02T03:04:05Z', role: 'user', from: '10.0.0.7', outcome: 'ok' }
    open('/agents/lab?part=log', [local, { ...lab, role: 'admin' }], {
      'GET /api/v1/agents/lab/audit': [
        { ...entry, owner: 'ann', method: 'Launch', session: 'abcdefghij01' },
        {
          ...entry,
          owner: 'bob',
          method: 'ReadFile',
          session: 'abcdefghij02',
          target: '/etc/shadow',
          outcome: 'session_read_not-found',
        },
        { ...entry, owner: 'ann', method: 'NewerThanThis' },
      ],
    })
    const rows = async () => (await screen.findAllByRole('row')).slice(1).map((r) => r.textContent)
    expect(await screen.findByText(/NewerThanThis/)).toBeInTheDocument()
    expect((await rows()).map((text) => /Launched|Read a file of|NewerThanThis/.exec(text)?.[0])).toEqual([
      'NewerThanThis',
      'Read a file of',
      'Launched',
    ])
    await userEvent.type(screen.getByRole('searchbox', { name: 'Filter entries' }), 'SHADOW 10.0')
    expect(await rows()).toHaveLength(1)
    await userEvent.clear(screen.getByRole('searchbox', { name: 'Filter entries' }))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Refused or failed only' }))
    expect(await rows()).toEqual([expect.stringContaining('session_read_not-found')])
  })

  it('reads older entries of the log, and those of one person, when they are asked for', async () => {
    const entry = (n: number) => ({
      at: new Date(Date.UTC(2026, 0, 1) + n).toISOString(),
      role: 'user',
      owner: n % 2 ? 'ann' : 'bob',
      method: `Act${n}`,
      outcome: 'ok',
    })
    const newest = Array.from({ length: 500 }, (_, i) => entry(i + 100))
    // On a slow machine the page asks for other things again meanwhile.
    const asked = () =>
      new URL(
        String(vi.mocked(globalThis.fetch).mock.calls.findLast(([address]) => String(address).includes('/audit'))?.[0]),
        location.href,
      ).searchParams
    open('/agents/lab?part=log', [local, { ...lab, role: 'admin' }], {
      'GET /api/v1/agents/lab/audit': () =>
        new Response(
          JSON.stringify(asked().has('before') ? [entry(1), entry(2)] : asked().has('owner') ? [entry(101)] : newest),
        ),
    })
    expect(await screen.findByText('500 entries')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Load older entries' }))
    expect(await screen.findByText('502 entries')).toBeInTheDocument()
    expect(asked().get('before')).toBe(newest[0]?.at)
    expect(screen.queryByRole('button', { name: 'Load older entries' })).toBeNull()
    await userEvent.click(screen.getByRole('combobox', { name: 'Person' }))
    await userEvent.click(await screen.findByTitle('ann'))
    expect(await screen.findByText('1 entry')).toBeInTheDocument()
    await waitFor(() => expect(asked().get('owner')).toBe('ann'))
  })

  it('is renamed, and lets a device in by a code', async () => {
    const { sent, where } = open('/agents/lab', [local, lab], {
      'PATCH /api/v1/agents/lab': { ...lab, name: 'lab2' },
      'POST /api/v1/agents/lab/pair': {
        code: '17-4555-3078',
        address: 'slipway://lab:7442',
        expiresAt: new Date(Date.now() + 600_000).toISOString(),
      },
    })
    await userEvent.click(await screen.findByRole('button', { name: 'Create a pairing code' }))
    expect(await screen.findByText('17-4555-3078')).toBeInTheDocument()
    const name = screen.getByRole('textbox', { name: 'Name' })
    await userEvent.clear(name)
    await userEvent.click(name)
    await userEvent.paste('lab2')
    await userEvent.click(screen.getByRole('button', { name: 'Save' }))
    await waitFor(() => expect(where()).toBe('/agents/lab2'))
    expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ name: 'lab2' })
  })
})
