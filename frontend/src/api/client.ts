import i18next from 'i18next'
import type { FieldProblem, Problem } from './types.gen'

/** A refusal or failure as the server tells it: decide by `code`, show `message` and `hint`. */
export class ApiProblem extends Error {
  readonly code: string
  readonly hint: string
  readonly fields: FieldProblem[]
  /** The message and the hint for other languages. */
  readonly said: Problem['said']
  readonly advice: Problem['advice']
  /** HTTP status; 0 when no answer came at all. */
  readonly status: number

  constructor(problem: Problem, status: number) {
    super(problem.message)
    this.name = 'ApiProblem'
    this.code = problem.code
    this.hint = problem.hint ?? ''
    this.fields = problem.fields ?? []
    this.said = problem.said
    this.advice = problem.advice
    this.status = status
  }
}

/** The code of a failure to reach the control plane at all. */
export const UNREACHABLE = 'server_connect_unavailable'

export type QueryParams = Record<string, string | number | boolean | undefined>

export interface Call {
  method?: string
  body?: unknown
  query?: QueryParams
  signal?: AbortSignal
}

/** Writes a path with its query, leaving undefined parameters out. */
export function address(path: string, query?: QueryParams): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) params.set(name, String(value))
  }
  const text = params.toString()
  return text ? `${path}?${text}` : path
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const text = await response.text().catch(() => '')
  try {
    const parsed: unknown = JSON.parse(text)
    if (isProblem(parsed)) return new ApiProblem(parsed, response.status)
  } catch {
    // Not a problem document: something between the page and the server answered.
  }
  return unexplained(response.status)
}

/** An answer that is none of the control plane's. */
export const unexplained = (status: number): ApiProblem =>
  new ApiProblem(
    {
      code: 'server_answer_invalid',
      message: i18next.t('problem.unexplained', { status }),
      hint: i18next.t('problem.unexplainedHint'),
    },
    status,
  )

/** No answer at all; hint says what becomes of what was asked for. */
export const unanswered = (hint: string): ApiProblem =>
  new ApiProblem({ code: UNREACHABLE, message: i18next.t('problem.unanswered'), hint }, 0)

/** Sends a request and returns the raw answer; throws ApiProblem for a status of 400 or more or no answer. */
export async function send(path: string, call: Call = {}): Promise<Response> {
  const init: RequestInit = { method: call.method ?? 'GET', credentials: 'same-origin' }
  if (call.signal) init.signal = call.signal
  if (call.body !== undefined) {
    init.body = JSON.stringify(call.body)
    init.headers = { 'content-type': 'application/json' }
  }
  let response: Response
  try {
    response = await fetch(address(path, call.query), init)
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw unanswered(i18next.t('problem.unansweredHint'))
  }
  if (!response.ok) throw await problemOf(response)
  return response
}

/** Sends a request and returns its JSON answer, or undefined where there is no content. */
export async function request<T>(path: string, call: Call = {}): Promise<T> {
  const response = await send(path, call)
  if (response.status === 204) return undefined as T
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

/** Any thrown value as a problem that can be shown. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error
  const message = error instanceof Error ? error.message : String(error)
  return new ApiProblem({ code: 'page_run_internal-error', message }, 0)
}
