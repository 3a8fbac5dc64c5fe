import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeService } from '@/api/testing/service'
import { makeAgent } from '@/api/testing/session'
import type { Service } from '@/api/types.gen'
import { NewServicePage } from './NewServicePage'

const post = 'POST /api/v1/services'
const forecast = 'POST /api/v1/preview'
const starts = {
  errors: [],
  warnings: [],
  image: { id: 'i' },
  forecasts: [{ agent: 'local', pulls: false, placements: [] }],
}
const wait = { code: 'scheduler_wait_resources', message: 'Needs 1 of 2 GPUs on local.', position: 1 }
const waits = { ...starts, forecasts: [{ agent: 'local', pulls: false, placements: [], wait }] }

function show(at: string, answers: Parameters<typeof serve>[0] = {}, services: Service[] = []) {
  const sent = serve({
    'GET /api/v1/services': services,
    'GET /api/v1/folders': [],
    'GET /api/v1/resources': [],
    [forecast]: starts,
    ...answers,
  })
  const view = renderView(<NewServicePage />, { at, known: { agents: [makeAgent()], devices: [] } })
  return { sent, ...view }
}

type Sent = ReturnType<typeof show>['sent']
const deployed = (sent: Sent) => sent.find((s) => s.method === 'POST' && s.path === '/api/v1/services')?.body

const create = () => userEvent.click(screen.getByRole('button', { name: /Create service|Deploy revision/ }))
const preview = () => within(screen.getByRole('region', { name: 'Each replica runs' }))

beforeEach(() => {
  HTMLElement.prototype.scrollIntoView = vi.fn()
})

describe('the form', () => {
  it('shows what each replica runs while it is entered', async () => {
    const { where } = show('/services/new')
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'qwen')
    preview().getByText('/app/llama-server')
    await userEvent.click(screen.getByRole('radio', { name: /vLLM/ }))
    expect(where()).toBe('/services/new?runtime=vllm')
    await userEvent.type(screen.getByRole('textbox', { name: 'Model name' }), 'Qwen/Qwen2.5')
    preview().getByText('Qwen/Qwen2.5')
    preview().getByText('vllm/vllm-openai:latest')
    screen.getByText('--gpu-memory-utilization')
    const command = screen.getByRole('textbox', { name: 'Command' })
    await userEvent.type(command, " 'x")
    preview().getByText('A quote in the command is not closed.')
    await userEvent.click(screen.getByRole('button', { name: 'Reset' }))
    expect(command).toHaveValue('vllm serve Qwen/Qwen2.5 --served-model-name qwen --port 8000')
  })

  it('sends nothing that can be seen to be wrong', async () => {
    const { sent } = show('/services/new')
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'a b')
    await create()
    await screen.findByText('Choose the folder with the model.')
    screen.getByText('2 fields need your attention.')
    expect(deployed(sent)).toBeUndefined()
  })

  it('tells what the agent refuses at its fields', async () => {
    const fields = [
      { field: 'serving.port', kind: 'range', message: 'A server cannot listen on it.', hint: 'Choose another.' },
      { field: 'threads', kind: 'range', message: 'Too many threads.' },
    ]
    const body = JSON.stringify({ code: 'session_create_invalid', message: 'Two are wrong.', fields })
    show('/services/new?runtime=nim', { [post]: () => new Response(body, { status: 422 }) })
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'llama')
    await create()
    await screen.findByText('A server cannot listen on it. Choose another.')
    const port = screen.getByRole('spinbutton', { name: 'Port' })
    expect(port).toHaveAttribute('aria-invalid', 'true')
    screen.getByText('Too many threads.')
    await userEvent.clear(port)
    await userEvent.type(port, '9000')
    expect(screen.queryByText(/A server cannot listen on it/)).toBeNull()
  })

  it('leads to the service that was made', async () => {
    const { sent, where } = show('/services/new?runtime=nim', { [post]: makeService({ name: 'llama' }) })
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'llama')
    await create()
    await waitFor(() => expect(where()).toBe('/services/llama?on=local'))
    expect(deployed(sent)).toMatchObject({
      name: 'llama',
      spec: { type: 'inference', agent: 'local', serving: { port: 8000 } },
    })
  })

  describe('of a custom server', () => {
    const folder = { name: 'models', agent: 'local', state: 'ready', mode: 'model' }
    const at = 'GET /api/v1/services/definition'
    const form = async (answers: Parameters<typeof serve>[0]) => {
      const shown = show('/services/new?runtime=custom', { 'GET /api/v1/folders': [folder], ...answers })
      await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'chat')
      await userEvent.type(screen.getByRole('textbox', { name: 'Image' }), 'mine:1')
      const read = screen.getByRole('button', { name: 'Read model-definition.yaml' })
      expect(read).toBeDisabled()
      await userEvent.click(screen.getByRole('combobox', { name: 'Folder' }))
      await userEvent.click(await screen.findByTitle('models'))
      await userEvent.click(read)
      return shown
    }

    it('is filled in from the definition in its folder', async () => {
      const health = { path: '/up', interval: '5s', initialDelay: '20m' }
      const preStart = [{ action: 'mkdir', path: '/tmp/a b' }]
      const serving = { command: ['serve', '--model', '/models/a b'], preStart, port: 9000, models: ['tiny'], health }
      const { sent } = await form({
        [at]: { file: 'model-definition.yaml', modelPath: '/models', serving },
        [post]: makeService({ name: 'chat' }),
      })
      await screen.findByText('Filled in from model-definition.yaml.')
      screen.getByText('1 action before the start')
      preview().getByText("mkdir '/tmp/a b'")
      preview().getByText(':9000/up')
      await create()
      await waitFor(() =>
        expect(deployed(sent)).toMatchObject({
          spec: { image: 'mine:1', mounts: [{ folder: 'models', target: '/models', readOnly: true }], serving },
        }),
      )
    })

    it('tells what is wrong in which line of the definition', async () => {
      const fields = [
        { field: 'model-definition.yaml:5', kind: 'required', message: 'port is missing.', hint: 'Add it here.' },
        { field: 'model-definition.yaml:7', kind: 'unknown', message: '"prot" is not a field here.' },
      ]
      const body = JSON.stringify({ code: 'session_create_invalid', message: 'It cannot be used.', fields })
      await form({ [at]: () => new Response(body, { status: 422 }) })
      const mistakes = within(await screen.findByRole('alert'))
      mistakes.getByText('It cannot be used.')
      mistakes.getByText('model-definition.yaml:5')
      mistakes.getByText('port is missing. Add it here.')
      mistakes.getByText('model-definition.yaml:7')
      expect(screen.getByRole('textbox', { name: 'Command' })).toHaveValue('')
      // It says nothing about another path.
      await userEvent.type(screen.getByRole('textbox', { name: 'Path in the folder' }), 'chat')
      expect(screen.queryByRole('alert')).toBeNull()
    })
  })

  it('says that a name is taken by another service of the machine', async () => {
    show('/services/new?runtime=nim', {}, [makeService()])
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'llama-chat')
    await screen.findByText(/^llama-chat already exists on local\./)
    screen.getByRole('button', { name: 'Deploy revision 2' })
  })

  it('changes what a service runs', async () => {
    const { sent } = show('/services/new?of=llama-chat&on=local', { [post]: makeService({ revision: 2 }) }, [
      makeService({ retry: true }),
    ])
    await screen.findByRole('heading', { name: 'New revision of llama-chat' })
    expect(screen.getByRole('textbox', { name: 'Name' })).toBeDisabled()
    const image = screen.getByRole('textbox', { name: 'Image' })
    await userEvent.clear(image)
    await userEvent.type(image, 'llama:2')
    await create()
    await waitFor(() =>
      expect(deployed(sent)).toMatchObject({
        name: 'llama-chat',
        retry: true,
        spec: { image: 'llama:2', serving: { port: 8080, command: ['llama-server', '--model', '/models/a b.gguf'] } },
      }),
    )
  })

  it('foresees what happens once nothing is known to be wrong', async () => {
    const { sent } = show('/services/new?runtime=nim', { [forecast]: waits })
    expect(screen.queryByRole('region', { name: 'What will happen' })).toBeNull()
    await userEvent.type(screen.getByRole('textbox', { name: 'Name' }), 'llama')
    await screen.findByText('Will wait')
    screen.getByText(/Needs 1 of 2 GPUs on local/)
    expect(sent.find((s) => `${s.method} ${s.path}` === forecast)?.body).toMatchObject({ type: 'inference' })
  })

  it.each([
    [starts, 'One replica of the new revision starts beside the old ones. No request is lost.'],
    [waits, /^There is no room for one more, so an old replica ends first/],
  ])('foresees how an update goes', async (answer, text) => {
    show('/services/new?of=llama-chat&on=local', { [forecast]: answer }, [makeService()])
    await screen.findByText('Replicas are replaced one by one')
    screen.getByText(text)
  })

  it('foresees a refusal', async () => {
    const errors = [{ field: 'image', kind: 'invalid', message: 'The image is not one of yours.', hint: 'Ask for it.' }]
    show('/services/new?of=llama-chat&on=local', { [forecast]: { ...starts, errors } }, [makeService()])
    await screen.findByText('This would be refused')
    screen.getByText('The image is not one of yours. Ask for it.')
  })

  it('says that the service to change is gone', async () => {
    show('/services/new?of=llama-chat')
    await screen.findByText('llama-chat not found')
  })
})
