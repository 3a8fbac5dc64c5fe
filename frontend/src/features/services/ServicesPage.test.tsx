import { act, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeService } from '@/api/testing/service'
import { makeAgent } from '@/api/testing/session'
import type { Service } from '@/api/types.gen'
import { keys } from '@/api/keys'
import { ServicesPage } from './ServicesPage'

const list = 'GET /api/v1/services'
const change = 'PATCH /api/v1/services/llama-chat'

function show(services: Service[], at = '/services', answers: Parameters<typeof serve>[0] = {}) {
  const sent = serve({ [list]: services, ...answers })
  const view = renderView(<ServicesPage />, { at, path: '/services/:name?', known: { agents: [makeAgent()] } })
  return { sent, ...view }
}

// Without a size nothing is drawn of a list.
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600)
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1200)
})

const row = async (name: string) =>
  within((await screen.findByRole('link', { name })).closest<HTMLElement>('[data-row-key]')!)

describe('the list', () => {
  it('says what a service is while there is none', async () => {
    show([])
    await screen.findByText('No services yet')
    expect(screen.getAllByRole('link', { name: 'New service' })[0]).toHaveAttribute('href', '/services/new')
  })

  it('says whether each answers, and its numbers', async () => {
    show([
      makeService(),
      makeService({ name: 'broken', state: 'FAILED', why: 'It failed 5 times.', live: [], public: true }),
    ])
    const ready = await row('llama-chat')
    ready.getByText('Ready')
    ready.getByText('1 of 1')
    ready.getByText('3,456')
    ready.getByText('180 ms')
    ready.getByRole('button', { name: 'Copy the address of llama-chat' })
    const failed = await row('broken')
    failed.getByText('It failed 5 times.')
    failed.getByRole('img', { name: 'Public: no token needed' })
    await userEvent.click(screen.getByRole('tab', { name: /Not serving/ }))
    expect(screen.queryByRole('link', { name: 'llama-chat' })).toBeNull()
  })

  it('tells of a failure and asks again', async () => {
    const answers = { [list]: () => refusal(503, 'server_connect_unavailable', 'No agent answers.', 'Start it.') }
    show([], '/services', answers)
    await screen.findByText('No agent answers.')
    screen.getByText('Start it.')
    screen.getByText('server_connect_unavailable')
    answers[list] = () => new Response(JSON.stringify([makeService()]))
    vi.restoreAllMocks()
    serve({ [list]: [] })
    await userEvent.click(screen.getByRole('button', { name: /Try again/ }))
    await screen.findByText('No services yet')
  })

  it('keeps numbers that are old and says so', async () => {
    const { client } = show([makeService()])
    await row('llama-chat')
    serve({ [list]: () => refusal(503, 'server_connect_unavailable', 'No agent answers.') })
    await act(() => client.refetchQueries({ queryKey: keys.services }))
    await screen.findByText(/^The numbers are from/)
    await row('llama-chat')
  })

  it('names machines whose services it cannot list', async () => {
    serve({ [list]: [makeService()] })
    const away = makeAgent({ name: 'lab', local: false })
    away.connection = { ...away.connection, state: 'down' }
    renderView(<ServicesPage />, { path: '/services/:name?', at: '/services', known: { agents: [makeAgent(), away] } })
    await screen.findByText('lab is unreachable.')
  })
})

describe('the detail', () => {
  const at = '/services/llama-chat?on=local'

  it('says how programs use the service', async () => {
    show([makeService()], at)
    await screen.findByText('http://127.0.0.1:40001/v1')
    await userEvent.click(screen.getByRole('tab', { name: 'Python' }))
    screen.getByText(/base_url="http:\/\/127.0.0.1:40001\/v1", api_key="YOUR_TOKEN"/)
    screen.getByText('Clients need a token. You have none yet.')
  })

  it('says where others reach it, and why not', async () => {
    const certificate = '-----BEGIN CERTIFICATE-----'
    const other = [
      { from: 'machine', url: 'http://127.0.0.1:7000/v1' },
      { from: 'network', url: 'https://lab:8443/v1', certificate },
    ]
    const { unmount } = show([makeService({ agent: 'lab', addresses: other })], '/services/llama-chat?on=lab')
    await screen.findByText('http://127.0.0.1:7000/v1')
    screen.getByText('On lab')
    screen.getByText('https://lab:8443/v1')
    screen.getByRole('button', { name: 'Certificate' })
    unmount()
    const refused = [...makeService().addresses, { from: 'network', fault: 'The port cannot be opened: in use' }]
    show([makeService({ addresses: refused })], at)
    await screen.findByText('The port cannot be opened: in use')
    expect(screen.queryByText('On local')).toBeNull()
  })

  it('says that there is none of the name', async () => {
    show([], at)
    await screen.findByText('llama-chat not found')
  })

  it('is of the machine in the address', async () => {
    show([makeService({ agent: 'lab', state: 'ASLEEP', why: '' }), makeService()], '/services/llama-chat?on=lab')
    const drawer = within(await screen.findByRole('dialog', { name: 'llama-chat' }))
    drawer.getByText('Asleep')
    drawer.getByText('on lab')
  })

  it('stops after a question, and starts', async () => {
    const stopped = makeService({ replicas: 0, state: 'STOPPED', live: [] })
    const { sent } = show([makeService()], at, { [change]: stopped })
    await userEvent.click(await screen.findByRole('button', { name: 'Stop' }))
    await screen.findByText(/^Its replicas finish the requests they have, then end\. New/)
    await userEvent.click(screen.getAllByRole('button', { name: 'Stop' }).at(-1)!)
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ replicas: 0 }))
  })

  it('tries again what failed', async () => {
    const { sent } = show([makeService({ state: 'FAILED' })], at, { [change]: makeService() })
    await userEvent.click(await screen.findByRole('button', { name: /Try again/ }))
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ tryAgain: true }))
  })

  it('leads to the sessions and logs of replicas', async () => {
    show([makeService()], `${at}&view=replicas`)
    expect(await screen.findByRole('link', { name: 'r1' })).toHaveAttribute('href', '/sessions/r1')
    expect(screen.getByRole('link', { name: 'Log' })).toHaveAttribute('href', '/sessions/r1?view=logs')
  })

  it('rolls back to an earlier revision', async () => {
    const [first] = makeService().revisions
    const two = makeService({ revision: 2, revisions: [{ ...first!, number: 2 }, first!] })
    const { sent } = show([two], `${at}&view=revisions`, { [change]: makeService() })
    const drawer = within(await screen.findByRole('dialog', { name: 'llama-chat' }))
    const cards = drawer.getAllByRole('listitem')
    within(cards[0]!).getByText('Current')
    within(cards[0]!).getByText("llama-server --model '/models/a b.gguf'")
    await userEvent.click(within(cards[1]!).getByRole('button', { name: 'Roll back to this' }))
    await userEvent.click(await screen.findByRole('button', { name: 'Roll back' }))
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ revision: 1 }))
  })

  it('shows the text of a token once', async () => {
    const token = { id: 't1', name: 'editor', createdAt: '2026-01-02T03:04:05Z' }
    const { sent } = show([makeService()], `${at}&view=tokens`, {
      'POST /api/v1/services/llama-chat/tokens': { ...token, text: 'sk-secret' },
    })
    await userEvent.click(await screen.findByRole('button', { name: 'New token…' }))
    await userEvent.type(await screen.findByRole('textbox', { name: 'Name' }), 'editor{Enter}')
    await screen.findByText('sk-secret')
    expect(sent.find((s) => s.method === 'POST')?.body).toEqual({ name: 'editor', lifetime: '90d' })
    await userEvent.click(screen.getAllByRole('button', { name: 'Close' }).at(-1)!)
    await waitFor(() => expect(screen.queryByText('sk-secret')).toBeNull())
  })

  it('revokes a token after a question', async () => {
    const tokens = [{ id: 't1', name: 'editor', createdAt: '2026-01-02T03:04:05Z' }]
    const { sent } = show([makeService({ tokens })], `${at}&view=tokens`, {
      'DELETE /api/v1/services/llama-chat/tokens/t1': null,
    })
    await userEvent.click(await screen.findByRole('button', { name: 'Revoke editor' }))
    await userEvent.click(await screen.findByRole('button', { name: 'Revoke' }))
    await waitFor(() => expect(sent.some((s) => s.method === 'DELETE')).toBe(true))
  })

  it('warns before it becomes public', async () => {
    const { sent } = show([makeService()], `${at}&view=settings`, { [change]: makeService({ public: true }) })
    await userEvent.click(await screen.findByRole('switch', { name: 'Public' }))
    await screen.findByText(/Anyone who reaches the address can use the model without a token/)
    expect(sent.some((s) => s.method === 'PATCH')).toBe(false)
    await userEvent.click(screen.getByRole('button', { name: 'Make public' }))
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ public: true }))
  })

  it('scales, and changes when it sleeps', async () => {
    const { sent } = show([makeService({ sleep: '30m' })], `${at}&view=settings`, { [change]: makeService() })
    const count = await screen.findByRole('spinbutton', { name: 'Replicas' })
    await userEvent.clear(count)
    await userEvent.type(count, '3{Enter}')
    await waitFor(() => expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ replicas: 3 }))
  })

  it('tells what happened to it and why', async () => {
    const events = [
      {
        at: '2026-01-02T03:05:05Z',
        kind: 'failure' as const,
        message: 'As it came.',
        said: [
          {
            say: 'eventFailure',
            with: [
              { hole: 'name', text: 'llama-chat-1' },
              { hole: 'number', text: '1' },
            ],
          },
        ],
        why: 'It fell over.',
        session: 'r1',
      },
      { at: '2026-01-02T03:04:05Z', kind: 'news' as 'created', message: 'It was created.' },
    ]
    show([makeService({ events })], `${at}&view=events`)
    const list = within(await screen.findByRole('list', { name: 'Events' }))
    const [failure, created] = list.getAllByRole('listitem')
    within(failure!).getByText('Replica llama-chat-1 of revision 1 failed.')
    within(failure!).getByText('It fell over.')
    expect(within(failure!).getByRole('link', { name: 'Log' })).toHaveAttribute('href', '/sessions/r1?view=logs')
    within(created!).getByText('It was created.')
  })

  it('says that there are no events of it', async () => {
    show([makeService()], `${at}&view=events`)
    await screen.findByText('No events yet')
  })

  it('shows its recipe', async () => {
    show([makeService()], at, {
      'GET /api/v1/services/llama-chat/recipe': {
        name: 'llama-chat',
        fileName: 'llama-chat.slipway.yaml',
        yaml: 'name: llama-chat\nreplicas: 1\n',
        pinned: true,
      },
    })
    await userEvent.click(await screen.findByRole('button', { name: 'Recipe' }))
    await screen.findByText(/^name: llama-chat/)
    screen.getByLabelText('Copy the recipe')
    screen.getByText('Save as file')
  })

  it('is removed after a question', async () => {
    const { sent, where } = show([makeService()], at, { 'DELETE /api/v1/services/llama-chat': null })
    await userEvent.click(await screen.findByRole('button', { name: 'Remove' }))
    const dialog = within(await screen.findByRole('dialog', { name: 'Remove llama-chat?' }))
    await userEvent.click(dialog.getByRole('button', { name: 'Remove' }))
    await waitFor(() => expect(where()).toBe('/services'))
    expect(sent.some((s) => s.method === 'DELETE')).toBe(true)
  })
})
