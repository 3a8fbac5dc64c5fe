import { act, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { refusal, renderView } from '@/api/testing/render'
import { makeService } from '@/api/testing/service'
import { makeAgent } from '@/api/testing/session'
import type { Chat, Service } from '@/api/types.gen'
import { Conversation } from './conversation'
import { PlaygroundPage } from './PlaygroundPage'

const list = '/api/v1/services'
const chatOf = (name: string) => `/api/v1/services/${name}/chat`
const word = (content: string) => ({ choices: [{ delta: { content } }] })
const usage = (prompt: number, completion: number) => ({
  choices: [],
  usage: { prompt_tokens: prompt, completion_tokens: completion },
})

/** An answer under the hand of the test. */
class Stream {
  #control!: ReadableStreamDefaultController<Uint8Array>
  cancelled = false
  readonly body = new ReadableStream<Uint8Array>({
    start: (control) => void (this.#control = control),
    cancel: () => void (this.cancelled = true),
  })

  constructor(readonly sent: Chat) {}

  say(...events: unknown[]) {
    for (const event of events) this.#control.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`))
  }

  finish(...events: unknown[]) {
    this.say(...events)
    this.#control.enqueue(new TextEncoder().encode('data: [DONE]\n\n'))
    this.#control.close()
  }

  cut = () => this.#control.close()
  abort = () => this.#control.error(new DOMException('aborted', 'AbortError'))
}

let streams: Record<string, Stream[]>
let refused: Record<string, () => Response>
let services: Service[]

beforeEach(() => {
  streams = {}
  refused = {}
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const path = String(input).split('?')[0] ?? ''
    if (path === list) return new Response(JSON.stringify(services))
    const answer = refused[path]?.()
    if (answer) return answer
    const stream = new Stream(JSON.parse(String(init?.body)) as Chat)
    init?.signal?.addEventListener('abort', stream.abort)
    ;(streams[path] ??= []).push(stream)
    return new Response(stream.body)
  })
})

function show(listed: Service[], at = '/playground', talk = new Conversation()) {
  services = listed
  return { talk, ...renderView(<PlaygroundPage talk={talk} />, { at, known: { agents: [makeAgent()] } }) }
}

const field = () => screen.findByRole('textbox', { name: 'Prompt' })
const send = async (text: string) => userEvent.type(await field(), `${text}{Enter}`)

/** The answer that a service is giving, once it was asked so often. */
const asked = (name: string, times = 1) =>
  waitFor(() => {
    const all = streams[chatOf(name)] ?? []
    expect(all).toHaveLength(times)
    return all[times - 1]!
  })

describe('a conversation', () => {
  it('streams words, and says how many and how fast', async () => {
    show([makeService()])
    await send('Hi{Shift>}{Enter}{/Shift}there')
    const stream = await asked('llama-chat')
    expect(stream.sent).toEqual({ messages: [{ role: 'user', content: 'Hi\nthere' }] })
    screen.getByText('Waiting for the first word…')
    stream.say(word('Hello'))
    await screen.findByText('Hello')
    screen.getByRole('button', { name: /Stop/ })
    expect(screen.getByRole('status')).toHaveTextContent('llama-chat is answering.')
    stream.finish(word(' you.\n\n```sh\nls <b>\n```'), usage(1234, 5))
    await screen.findByText('Hello you.')
    expect(screen.getByLabelText('Code').textContent).toBe('ls <b>')
    screen.getByText('1,234 tokens')
    screen.getByText('5 tokens')
    expect(screen.getByText('First word').nextSibling).toHaveTextContent(/ms$/)
    expect(screen.getByText('Speed').nextSibling).toHaveTextContent(/tokens\/s$/)
    expect(screen.getByRole('status')).toHaveTextContent('llama-chat answered.')
    expect(await field()).toHaveValue('')
  })

  it('sends what was said before, and the parameters', async () => {
    show([makeService()])
    await userEvent.type(await screen.findByLabelText('System prompt'), 'Be brief.')
    await userEvent.type(screen.getByLabelText('Temperature'), '0')
    await userEvent.type(screen.getByLabelText('Top-p'), '0.5')
    await userEvent.type(screen.getByLabelText('Max tokens'), '64')
    await userEvent.type(screen.getByLabelText('Seed'), '7')
    await send('One')
    ;(await asked('llama-chat')).finish(word('1'))
    await screen.findByRole('button', { name: 'Regenerate the answer of llama-chat' })
    await send('Two')
    expect((await asked('llama-chat', 2)).sent).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'One' },
        { role: 'assistant', content: '1' },
        { role: 'user', content: 'Two' },
      ],
      temperature: 0,
      topP: 0.5,
      maxTokens: 64,
      seed: 7,
    })
  })

  it('shows thoughts until the answer begins, and does not send them back', async () => {
    show([makeService()])
    await send('Why?')
    const first = await asked('llama-chat')
    act(() => first.say({ choices: [{ delta: { reasoning_content: 'Let me see.' } }] }))
    expect(await screen.findByText('Let me see.')).toBeVisible()
    act(() => first.finish(word('Because.')))
    await screen.findByText('Because.')
    expect(screen.getByText('Let me see.')).not.toBeVisible()
    await userEvent.click(screen.getByText('Thoughts'))
    expect(screen.getByText('Let me see.')).toBeVisible()
    await send('And?')
    expect(JSON.stringify((await asked('llama-chat', 2)).sent)).not.toContain('Let me see.')
  })

  it('stops, and the request ends with it', async () => {
    show([makeService()])
    await send('Hi')
    const stream = await asked('llama-chat')
    stream.say(word('Hel'))
    await screen.findByText('Hel')
    await userEvent.click(screen.getByRole('button', { name: /Stop/ }))
    await screen.findByText('You stopped this answer.')
    screen.getByText('Hel')
    screen.getByRole('button', { name: /Send/ })
  })

  it('asks again, changes the last prompt, and is cleared', async () => {
    show([makeService()])
    await send('Hi')
    ;(await asked('llama-chat')).finish(word('first'))
    await userEvent.click(await screen.findByRole('button', { name: /^Regenerate/ }))
    const second = await asked('llama-chat', 2)
    expect(second.sent.messages).toEqual([{ role: 'user', content: 'Hi' }])
    expect(screen.queryByText('first')).toBeNull()
    second.finish(word('second'))
    await screen.findByText('second')

    await userEvent.type(await field(), 'later')
    await userEvent.click(await screen.findByRole('button', { name: 'Edit the last prompt' }))
    expect(await field()).toHaveValue('Hi')
    await userEvent.keyboard('{Escape}')
    expect(await field()).toHaveValue('later')
    await userEvent.click(screen.getByRole('button', { name: 'Edit the last prompt' }))
    await send(' you')
    expect((await asked('llama-chat', 3)).sent.messages).toEqual([{ role: 'user', content: 'Hi you' }])
    expect(screen.queryByText('second')).toBeNull()
    expect(await field()).toHaveValue('later')
    await userEvent.click(screen.getByRole('button', { name: /Clear/ }))
    await screen.findByText('Ask the model something')
  })

  it('goes on while another page is shown', async () => {
    const { talk, unmount } = show([makeService()])
    await send('Hi')
    const stream = await asked('llama-chat')
    await userEvent.type(await field(), 'half a th')
    unmount()
    await act(async () => stream.finish(word('Hello'), usage(1, 1)))
    show([makeService()], '/playground', talk)
    await screen.findByText('Hello')
    expect(await field()).toHaveValue('half a th')
  })

  it('leaves Enter to whoever writes Korean', async () => {
    show([makeService()])
    const box = await field()
    await userEvent.type(box, '안녕')
    box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, isComposing: true }))
    expect(box).toHaveValue('안녕')
    expect(streams).toEqual({})
  })
})

describe('a failure', () => {
  it('never looks like a whole answer', async () => {
    show([makeService()])
    await send('Hi')
    const stream = await asked('llama-chat')
    stream.say(word('Half'))
    stream.cut()
    await screen.findByText('Broken off.')
    screen.getByText('Half')
    expect(screen.getByRole('status')).toHaveTextContent('broke off')
  })

  it('before the stream is told with what to do', async () => {
    refused[chatOf('llama-chat')] = () => refusal(409, 'session_update_conflict', 'It is stopped.', 'Start it.')
    show([makeService({ state: 'STOPPED', why: 'Stopped by request.' })])
    await screen.findByText('Stopped by request.')
    await send('Hi')
    await screen.findByText('It is stopped.')
    screen.getByText(/Start it\./)
    screen.getByText('session_update_conflict')
  })

  it('in the stream is told, too', async () => {
    show([makeService()])
    await send('Hi')
    ;(await asked('llama-chat')).say({ error: { message: 'No replica became ready in time.' } })
    await screen.findByText('No replica became ready in time.')
  })

  it('of a service that sleeps is only a wait', async () => {
    show([makeService({ state: 'ASLEEP', why: 'The next request wakes it.' })])
    await send('Hi')
    await asked('llama-chat')
    await screen.findByText(/^Asleep: the request waits until the service answers\. The next request wakes it\.$/)
  })

  it('of the list is told, and no service is said', async () => {
    const { unmount } = show([])
    await screen.findByText('No services yet')
    unmount()
    vi.mocked(fetch).mockImplementation(async () => refusal(503, 'server_connect_unavailable', 'No agent answers.'))
    show([])
    await screen.findByText('No agent answers.')
  })
})

describe('two services', () => {
  const both = [makeService(), makeService({ name: 'qwen', state: 'DEGRADED' })]

  it('get one prompt and keep conversations of their own', async () => {
    const { where } = show(both, '/playground?service=qwen&agent=local')
    await userEvent.click(await screen.findByRole('button', { name: 'Compare' }))
    expect(where()).toBe('/playground?service=qwen&agent=local&beside=llama-chat&besideAgent=local')
    await send('Hi')
    ;(await asked('qwen')).finish(word('from qwen'), usage(3, 4))
    const other = await asked('llama-chat')
    other.say(word('from llama'))
    await screen.findByText('from llama')
    expect(screen.queryByRole('button', { name: /^Regenerate/ })).toBeNull()
    other.finish(usage(3, 9))
    await screen.findByRole('button', { name: 'Regenerate the answer of qwen' })
    const [turn] = screen.getAllByRole('article')
    expect(
      within(turn!)
        .getAllByText('Answer')
        .map((name) => name.nextSibling?.textContent),
    ).toEqual(['4 tokens', '9 tokens'])
    await send('More')
    expect((await asked('llama-chat', 2)).sent.messages[1]).toEqual({ role: 'assistant', content: 'from llama' })
    expect((await asked('qwen', 2)).sent.messages[1]).toEqual({ role: 'assistant', content: 'from qwen' })
  })

  it('are compared by a prompt that one has answered already', async () => {
    show(both)
    await send('Hi')
    ;(await asked('llama-chat')).finish(word('Hello'))
    await screen.findByText('Hello')
    await userEvent.click(screen.getByRole('button', { name: 'Compare' }))
    await userEvent.click(await screen.findByRole('button', { name: 'Ask qwen' }))
    expect((await asked('qwen')).sent.messages).toEqual([{ role: 'user', content: 'Hi' }])
  })

  it('says that the one of the address is not there', async () => {
    show(both, '/playground?service=removed&agent=local')
    await screen.findByText(/^removed was removed/)
  })
})
