import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, render, type RenderResult } from '@testing-library/react'
import { App, ConfigProvider } from 'antd'
import type { ReactNode } from 'react'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { vi } from 'vitest'
import { SessionActionsContext, type SessionActions } from '@/lib/actions'
import { toBook } from '../hooks'
import { keys } from '../keys'
import type {
  Agent,
  Code,
  DeviceBoard,
  Machine,
  Operation,
  Preset,
  Recent,
  RecentProject,
  Session,
  Settings,
} from '../types.gen'

interface Known {
  sessions?: Session[]
  machines?: Machine[]
  recents?: Recent[]
  projects?: RecentProject[]
  settings?: Settings
  devices?: DeviceBoard[]
  presets?: Preset[]
  agents?: Agent[]
  operations?: Operation[]
}

interface Rendered extends RenderResult {
  client: QueryClient
  actions: { [K in keyof SessionActions]: ReturnType<typeof vi.fn> }
  /** Path and query of the address now. */
  where: () => string
  /** Goes to another address, as the button of the browser does. */
  navigate: (to: string) => Promise<void>
}

// No test looks at colours: without antd's styles jsdom has nothing to work out.
const plain = { zeroRuntime: true, token: { motion: false } }

/** Renders a view as the application would: with a router at an address, and Query holding what is known. */
export function renderView(view: ReactNode, options: { at?: string; path?: string; known?: Known } = {}): Rendered {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false }, mutations: { retry: false } } })
  const { sessions, machines, recents, projects, settings, devices, presets, agents, operations } = options.known ?? {}
  if (sessions) client.setQueryData(keys.sessions, toBook(sessions))
  if (machines) client.setQueryData(keys.machines, machines)
  if (recents) client.setQueryData(keys.recents, recents)
  if (projects) client.setQueryData(keys.projects, projects)
  if (settings) client.setQueryData(keys.settings, settings)
  if (devices) client.setQueryData(keys.devices, devices)
  if (presets) client.setQueryData(keys.presets, presets)
  if (agents) client.setQueryData(keys.agents, agents)
  if (operations) client.setQueryData(keys.operations, operations)
  const actions = {
    showDetail: vi.fn(),
    showLogs: vi.fn(),
    openApps: vi.fn(),
    openFiles: vi.fn(),
    openSSH: vi.fn(),
    openTerminal: vi.fn(),
    commit: vi.fn(),
    terminate: vi.fn(),
    terminateNow: vi.fn(),
    undoTerminate: vi.fn(),
    keep: vi.fn(),
    setPriority: vi.fn(),
    park: vi.fn(),
    resume: vi.fn(),
    move: vi.fn(),
    setTags: vi.fn(),
    showRecipe: vi.fn(),
    compareRecipes: vi.fn(),
  }
  const router = createMemoryRouter([{ path: options.path ?? '*', element: view }], {
    initialEntries: [options.at ?? '/'],
  })
  const result = render(
    <QueryClientProvider client={client}>
      <ConfigProvider theme={plain}>
        <App>
          <SessionActionsContext value={actions}>
            <RouterProvider router={router} />
          </SessionActionsContext>
        </App>
      </ConfigProvider>
    </QueryClientProvider>,
  )
  const where = () => router.state.location.pathname + router.state.location.search
  const navigate = (to: string) => act(() => router.navigate(to))
  return { ...result, client, actions, where, navigate }
}

interface Sent {
  method: string
  path: string
  body: unknown
}

/**
 * Answers every request from a table of "METHOD path" (without the query); one that is missing is a 404. Returns what
 * was sent.
 */
export function serve(
  answers: Record<string, unknown | ((body: unknown, query: URLSearchParams) => Response)>,
): Sent[] {
  const sent: Sent[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const [path = '', query] = String(input).split('?')
    const method = init?.method ?? 'GET'
    const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
    sent.push({ method, path, body })
    const answer = answers[`${method} ${path}`]
    if (typeof answer === 'function')
      return (answer as (body: unknown, query: URLSearchParams) => Response)(body, new URLSearchParams(query))
    if (answer === undefined) return refusal(404, 'request_route_not-found', `no answer for ${method} ${path}`)
    return new Response(JSON.stringify(answer), { status: 200 })
  })
  return sent
}

/** A refusal as the server writes it. */
export function refusal(status: number, code: Code, message: string, hint = ''): Response {
  return new Response(JSON.stringify({ code, message, hint }), { status })
}
