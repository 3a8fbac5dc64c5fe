/** What a streamed answer says next. */
export type Piece =
  | { kind: 'text'; text: string }
  /** What a reasoning model thinks before it answers. */
  | { kind: 'thought'; text: string }
  | { kind: 'finish'; reason: string }
  | { kind: 'usage'; prompt: number; completion: number }
  | { kind: 'error'; message: string }
  | { kind: 'done' }

/** The longest line that is read. A longer one is no event of a model. */
const longest = 1 << 20

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** What one event says. Members of an unexpected type say nothing: a model server wrote them. */
function piecesOf(data: string): Piece[] {
  if (data.trim() === '[DONE]') return [{ kind: 'done' }]
  let event: unknown
  try {
    event = JSON.parse(data)
  } catch {
    return []
  }
  if (!isObject(event)) return []
  if (isObject(event.error)) {
    const { message } = event.error
    return [{ kind: 'error', message: typeof message === 'string' ? message : '' }]
  }
  const pieces: Piece[] = []
  const choice: unknown = Array.isArray(event.choices) ? event.choices[0] : undefined
  if (isObject(choice)) {
    const delta = isObject(choice.delta) ? choice.delta : {}
    // Servers do not agree on its name.
    const thought = delta.reasoning_content ?? delta.reasoning
    if (typeof thought === 'string' && thought) pieces.push({ kind: 'thought', text: thought })
    const text = delta.content
    if (typeof text === 'string' && text) pieces.push({ kind: 'text', text })
    if (typeof choice.finish_reason === 'string') pieces.push({ kind: 'finish', reason: choice.finish_reason })
  }
  if (isObject(event.usage)) {
    const { prompt_tokens: prompt, completion_tokens: completion } = event.usage
    if (isCount(prompt) && isCount(completion)) pieces.push({ kind: 'usage', prompt, completion })
  }
  return pieces
}

/** Reads server-sent events as they arrive, cut anywhere. */
export class EventReader {
  #line = ''
  #data: string[] = []

  push(text: string): Piece[] {
    const lines = (this.#line + text).split(/\r\n|\n|\r(?!$)/)
    // A \r at the end stays: \n may follow.
    this.#line = lines.pop() ?? ''
    if (this.#line.length > longest) throw new RangeError('the line of an event is too long')
    return lines.flatMap((line) => this.#read(line))
  }

  #read(line: string): Piece[] {
    if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5))
    if (line !== '' || this.#data.length === 0) return []
    return piecesOf(this.#data.splice(0).join('\n'))
  }
}

/** The pieces of a streamed answer. It broke off unless one of them is done or an error. */
export async function* piecesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Piece> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const events = new EventReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      for (const piece of events.push(decoder.decode(value, { stream: true }))) {
        yield piece
        if (piece.kind === 'done' || piece.kind === 'error') return
      }
    }
  } finally {
    // Frees the connection, whoever ends it.
    void reader.cancel().catch(() => undefined)
  }
}
