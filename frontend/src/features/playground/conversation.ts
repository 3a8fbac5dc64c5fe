import { asProblem } from '@/api/client'
import { chat, type ServiceRef } from '@/api/services'
import type { Chat, ChatMessage } from '@/api/types.gen'
import type { Told } from '@/lib/phrases'
import { piecesIn } from './stream'

/** What one service answers, as far as it has come. Times are in ms since the prompt was sent. */
export interface Answer {
  of: ServiceRef
  text: string
  /** What the model thought first. It is not part of the conversation. */
  thought?: string
  /** Broken: the stream ended before the model said that it is done. */
  outcome: 'waiting' | 'streaming' | 'done' | 'stopped' | 'broken' | 'failed'
  /** Why the model ended it: stop, length. */
  finish?: string
  usage?: { prompt: number; completion: number }
  first?: number
  last?: number
  /** An ApiProblem fits. */
  problem?: Told & { message: string; code?: string }
}

/** A prompt, and the answers of the services that were asked: one, or two side by side. */
export interface Turn {
  id: number
  prompt: string
  answers: readonly (Answer | undefined)[]
}

/** What a model is told besides the conversation. Fields that are empty or null are left to it. */
export interface Parameters {
  system: string
  temperature: number | null
  topP: number | null
  maxTokens: number | null
  seed: number | null
}

export interface State {
  turns: readonly Turn[]
  /** What is typed and not sent yet. */
  draft: string
  /** What was typed before the last prompt was taken back to change it. */
  before: string | undefined
  parameters: Parameters
}

const empty: State = {
  turns: [],
  draft: '',
  before: undefined,
  parameters: { system: '', temperature: null, topP: null, maxTokens: null, seed: null },
}

/** The longest answer that is read, in characters: one without an end would fill the memory. */
const longest = 4 << 20

export const isOpen = (answer: Answer | undefined): boolean =>
  answer?.outcome === 'waiting' || answer?.outcome === 'streaming'

/** What a service is told: the turns that it has answered on its side, and the prompt. */
export function messagesOf(system: string, turns: readonly Turn[], prompt: string, side: number): ChatMessage[] {
  const messages: ChatMessage[] = system.trim() ? [{ role: 'system', content: system }] : []
  for (const turn of turns) {
    const content = turn.answers[side]?.text
    if (content) messages.push({ role: 'user', content: turn.prompt }, { role: 'assistant', content })
  }
  return [...messages, { role: 'user', content: prompt }]
}

function requestOf({ temperature, topP, maxTokens, seed }: Parameters, messages: ChatMessage[]): Chat {
  return {
    messages,
    ...(temperature === null ? {} : { temperature }),
    ...(topP === null ? {} : { topP }),
    ...(maxTokens === null ? {} : { maxTokens }),
    ...(seed === null ? {} : { seed }),
  }
}

/**
 * A conversation with models. It is kept in memory alone, and answers arrive while another page is shown. They are
 * shown at most once a frame.
 */
export class Conversation {
  #state = empty
  #made = 0
  #frame = 0
  readonly #listeners = new Set<() => void>()
  readonly #open = new Map<string, { control: AbortController; answer: Answer }>()

  readonly state = (): State => this.#state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change }
    this.#listeners.forEach((listener) => listener())
  }

  write(draft: string): void {
    this.#set({ draft })
  }

  adjust(change: Partial<Parameters>): void {
    this.#set({ parameters: { ...this.#state.parameters, ...change } })
  }

  /** Sends what is typed to one service, or to two. */
  send(services: readonly ServiceRef[]): void {
    const { turns, draft, before } = this.#state
    const turn: Turn = { id: ++this.#made, prompt: draft.trim(), answers: [] }
    this.#set({
      turns: [...(before === undefined ? turns : turns.slice(0, -1)), turn],
      draft: before ?? '',
      before: undefined,
    })
    services.forEach((of, side) => this.#ask(turn, side, of))
  }

  /** Asks for another answer to the last prompt. */
  again(side: number, of: ServiceRef): void {
    const turn = this.#state.turns.at(-1)
    if (turn) this.#ask(turn, side, of)
  }

  /** Takes the last prompt back into the field. It is replaced when the field is sent. */
  edit(): void {
    const { turns, draft } = this.#state
    this.#set({ before: draft, draft: turns.at(-1)?.prompt ?? '' })
  }

  cancelEdit(): void {
    this.#set({ draft: this.#state.before ?? '', before: undefined })
  }

  stop(): void {
    this.#open.forEach(({ control }) => control.abort())
  }

  clear(): void {
    this.stop()
    this.#open.clear()
    this.#set({ turns: [], draft: this.#state.before ?? this.#state.draft, before: undefined })
  }

  #ask(turn: Turn, side: number, of: ServiceRef): void {
    const { turns, parameters } = this.#state
    const body = requestOf(
      parameters,
      messagesOf(
        parameters.system,
        turns.slice(
          0,
          turns.findIndex(({ id }) => id === turn.id),
        ),
        turn.prompt,
        side,
      ),
    )
    const control = new AbortController()
    const key = `${turn.id}/${side}`
    this.#open.set(key, { control, answer: { of, text: '', outcome: 'waiting' } })
    this.#show()
    const change = (next: Partial<Answer>) => {
      const one = this.#open.get(key)
      if (one?.control === control) one.answer = { ...one.answer, ...next }
      this.#frame ||= requestAnimationFrame(() => this.#show())
    }
    void follow(of, body, control, change).then((end) => {
      change(end)
      this.#show()
      if (this.#open.get(key)?.control === control) this.#open.delete(key)
    })
  }

  /** Puts what has arrived into the turns. */
  #show(): void {
    cancelAnimationFrame(this.#frame)
    this.#frame = 0
    this.#set({
      turns: this.#state.turns.map((turn) => {
        const fresh = [0, 1].map((side) => this.#open.get(`${turn.id}/${side}`)?.answer)
        if (!fresh.some(Boolean)) return turn
        return { ...turn, answers: [0, 1].map((side) => fresh[side] ?? turn.answers[side]) }
      }),
    })
  }
}

/** Asks a service and follows its answer. Returns how it ended. */
async function follow(
  of: ServiceRef,
  body: Chat,
  control: AbortController,
  change: (next: Partial<Answer>) => void,
): Promise<Partial<Answer>> {
  const began = performance.now()
  let events: Response['body'] | undefined
  let text = ''
  let thought = ''
  try {
    events = (await chat(of, body, control.signal)).body
    for await (const piece of events ? piecesIn(events) : []) {
      const last = performance.now() - began
      if (piece.kind === 'text' || piece.kind === 'thought') {
        const first = text || thought ? {} : { first: last }
        if (piece.kind === 'text') change({ ...first, text: (text += piece.text), outcome: 'streaming', last })
        else change({ ...first, thought: (thought += piece.text), outcome: 'streaming', last })
        if (text.length + thought.length > longest) control.abort()
      } else if (piece.kind === 'finish') change({ finish: piece.reason })
      else if (piece.kind === 'usage') change({ usage: { prompt: piece.prompt, completion: piece.completion } })
      else if (piece.kind === 'done') return { outcome: 'done' }
      else if (piece.message) return { outcome: 'failed', problem: { message: piece.message } }
    }
    return { outcome: 'broken' }
  } catch (error) {
    if (control.signal.aborted) return { outcome: 'stopped' }
    return events === undefined ? { outcome: 'failed', problem: asProblem(error) } : { outcome: 'broken' }
  }
}
