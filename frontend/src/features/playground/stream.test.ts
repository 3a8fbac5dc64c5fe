import { describe, expect, it } from 'vitest'
import { EventReader, type Piece, piecesIn } from './stream'

const word = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}`
const text = (content: string): Piece => ({ kind: 'text', text: content })

/** A body that comes in the pieces given. */
function body(...chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    start(control) {
      for (const chunk of chunks) control.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk)
      control.close()
    },
  })
}

async function read(...chunks: (string | Uint8Array)[]): Promise<Piece[]> {
  const pieces: Piece[] = []
  for await (const piece of piecesIn(body(...chunks))) pieces.push(piece)
  return pieces
}

describe('a streamed answer', () => {
  const whole = [
    `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
    word('Hel'),
    word('lo, 세계'),
    `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
    `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
    'data: [DONE]',
  ]
  const pieces: Piece[] = [
    text('Hel'),
    text('lo, 세계'),
    { kind: 'finish', reason: 'stop' },
    { kind: 'usage', prompt: 3, completion: 2 },
    { kind: 'done' },
  ]

  it.each(['\n', '\r\n', '\r'])('is read with lines that end in %j, cut anywhere', async (end) => {
    const bytes = new TextEncoder().encode(whole.map((line) => line + end + end).join(''))
    for (const size of [1, 2, 3, 7, 64, bytes.length]) {
      const chunks: Uint8Array[] = []
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.slice(at, at + size))
      // A \r that ends the stream may still be half of \r\n: nothing says that the last event is over.
      expect(await read(...chunks)).toEqual(end === '\r' ? pieces.slice(0, -1) : pieces)
    }
  })

  it.each(['reasoning_content', 'reasoning'])('has thoughts of their own, as %s', async (name) => {
    const event = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
    const thoughts = event({ role: 'assistant', content: null, [name]: 'Hm' }) + event({ [name]: ', yes' })
    expect(await read(thoughts, word('Yes.') + '\n\n')).toEqual([
      { kind: 'thought', text: 'Hm' },
      { kind: 'thought', text: ', yes' },
      text('Yes.'),
    ])
  })

  it('broke off if nothing says that it is done', async () => {
    expect(await read(word('Hel') + '\n\n', word('lo') + '\n\n')).toEqual([text('Hel'), text('lo')])
    expect(await read('data: [DONE]')).toEqual([])
    expect(await read()).toEqual([])
  })

  it('ends with what is said in its place', async () => {
    const error = { kind: 'error', message: 'No replica of this service became ready in time.' }
    const said = `data: {"error":{"message":"${error.message}","type":"server_error","code":"unavailable"}}\n\n`
    expect(await read(': waiting\n\n', said, word('more') + '\n\n')).toEqual([error])
    expect(await read('data: {"error":{"message":7}}\n\n')).toEqual([{ kind: 'error', message: '' }])
  })

  it('says nothing by what no model writes', async () => {
    const strange = ['7', 'null', '{', '{"choices":7}', '{"choices":[7]}', '{"choices":[{"delta":{"content":{}}}]}']
    const usage = '{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":"2"}}'
    const lines = [...strange, usage].map((data) => `data: ${data}\n\n`)
    expect(await read('event: message\nid: 7\nretry: 1\n\n', ...lines, 'data:[DONE]\n\n')).toEqual([{ kind: 'done' }])
  })

  it('is read as one event over several lines', async () => {
    expect(await read('data: {"choices":[{"delta":\ndata: {"content":"a"}}]}\n\n')).toEqual([text('a')])
  })

  it('is left once it is done, and if it never ends a line', async () => {
    let left = false
    const endless = new ReadableStream<Uint8Array>({
      pull: (control) => control.enqueue(new TextEncoder().encode('data: [DONE]\n\n')),
      cancel: () => void (left = true),
    })
    for await (const piece of piecesIn(endless)) expect(piece).toEqual({ kind: 'done' })
    expect(left).toBe(true)
    expect(() => new EventReader().push('x'.repeat((1 << 20) + 1))).toThrow(RangeError)
  })
})
