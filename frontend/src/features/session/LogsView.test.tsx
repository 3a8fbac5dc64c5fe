import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { Kernel } from '@/api/types.gen'
import { LogsView } from './LogsView'

const kernel = (name: string): Kernel => ({
  name,
  hostname: name,
  container: 'c0ffee',
  status: 'RUNNING',
  exitCode: null,
  grants: { cpus: [], memory: 0, gpus: [] },
})
const session = makeSession({ id: 's', name: 'reader', kernels: [kernel('main1'), kernel('sub1')] })

describe('the log of a session', () => {
  it('says that it is being read, and then that there is nothing in it', async () => {
    let answer: (response: Response) => void = () => undefined
    serve({
      'GET /api/v1/sessions/s/logs': () =>
        new Promise<Response>((resolve) => (answer = resolve)) as unknown as Response,
    })
    renderView(<LogsView session={session} />)
    expect(screen.getByText('Loading the log…')).toBeInTheDocument()
    answer(new Response(''))
    expect(await screen.findByText('No output yet.')).toBeInTheDocument()
    expect(screen.getByText('complete')).toBeInTheDocument()
  })
  it('says that a session which has ended wrote nothing', async () => {
    serve({ 'GET /api/v1/sessions/s/logs': () => new Response('') })
    renderView(<LogsView session={{ ...session, status: 'TERMINATED' }} />)
    expect(await screen.findByText('The session wrote no output.')).toBeInTheDocument()
  })
  it('leaves the way to another container open when one cannot be read', async () => {
    serve({ 'GET /api/v1/sessions/s/logs': () => refusal(404, 'session_use_not-found', 'There is no log of main1.') })
    const { where } = renderView(<LogsView session={session} />)
    expect(await screen.findByText('There is no log of main1.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('combobox', { name: 'Container' }))
    await userEvent.click(await screen.findByTitle('sub1'))
    await waitFor(() => expect(where()).toBe('/?kernel=sub1'))
  })
})
