import i18next from 'i18next'
import { type Code, routes, type FieldProblem, type Problem, type RouteName, type RouteTypes } from './types.gen'

/** A refusal or failure as the server tells it: decide by `code`, show `message` and `hint`. */
export class ApiProblem extends Error {
  readonly code: Code
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

type QueryValue = string | number | boolean | undefined

/** The parameters in a path. */
type ParamsIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamsIn<Rest> : never
type PathOf<N extends RouteName> = ParamsIn<(typeof routes)[N]['path']>
type QueryOf<N extends RouteName> = (typeof routes)[N] extends { query: readonly (infer Name extends string)[] }
  ? Name
  : never

/** What fills a route's address. Parameters that are undefined, empty or false are left out, true is written as 1. */
export type Address<N extends RouteName> = { query?: { [Name in QueryOf<N>]?: QueryValue } } & ([PathOf<N>] extends [
  never,
]
  ? { path?: undefined }
  : { path: Record<PathOf<N>, string> })

/** What a call of a route is given. */
type Given<N extends RouteName> = Address<N> & { signal?: AbortSignal | undefined } & ([
    RouteTypes[N]['request'],
  ] extends [undefined]
    ? { body?: undefined }
    : { body: RouteTypes[N]['request'] })

type Optional<T> = Record<string, never> extends T ? [given?: T] : [given: T]

/** A route's path and query. */
export function target<N extends RouteName>(name: N, ...[given]: Optional<Address<N>>): string {
  const { path = {}, query = {} } = (given ?? {}) as {
    path?: Record<string, string>
    query?: Record<string, QueryValue>
  }
  const filled = routes[name].path.replace(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(path[param] ?? ''))
  const params = new URLSearchParams()
  for (const [param, value] of Object.entries(query)) {
    if (value === true) params.set(param, '1')
    else if (value !== undefined && value !== '' && value !== false) params.set(param, String(value))
  }
  const text = params.toString()
  return text ? `${filled}?${text}` : filled
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
export async function send(method: string, address: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, credentials: 'same-origin' }
  if (signal) init.signal = signal
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { 'content-type': 'application/json' }
  }
  let response: Response
  try {
    response = await fetch(address, init)
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw unanswered(i18next.t('problem.unansweredHint'))
  }
  if (!response.ok) throw await problemOf(response)
  return response
}

/** The JSON of an answer, or undefined where there is no content. */
export async function content<T>(response: Response): Promise<T> {
  if (response.status === 204) return undefined as T
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

/** Calls a route and returns the answer as it comes, for a stream. */
export function open<N extends RouteName>(name: N, ...[given]: Optional<Given<N>>): Promise<Response> {
  return send(routes[name].method, target(name, ...([given] as Optional<Address<N>>)), given?.body, given?.signal)
}

/** Calls a route and returns what it answers. */
export async function call<N extends RouteName>(
  name: N,
  ...given: Optional<Given<N>>
): Promise<RouteTypes[N]['response']> {
  return content(await open(name, ...given))
}

/** Any thrown value as a problem that can be shown. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error
  const message = error instanceof Error ? error.message : String(error)
  return new ApiProblem({ code: 'server_request_internal-error', message }, 0)
}
