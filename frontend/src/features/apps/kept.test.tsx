import { screen } from '@testing-library/react'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { App, Phrase } from '@/api/types.gen'
import { AppsModal } from './AppsModal'

const session = makeSession({ id: 'aaaaaaaaaaaa', name: 'train-a', status: 'RUNNING' })
const lab: App = { id: 'jupyterlab', title: 'JupyterLab', kind: 'web', port: 7430, state: 'ready', url: '' }
const notKept = (say: string): Phrase[] => [
  { say, with: [{ hole: 'notebooks', text: ', ', with: [{ text: 'a.ipynb' }] }] },
]

const show = (said: Partial<App>) => {
  serve({
    'GET /api/v1/sessions/aaaaaaaaaaaa': session,
    'GET /api/v1/sessions/aaaaaaaaaaaa/apps': [{ ...lab, ...said }],
  })
  renderView(<AppsModal sessionId={session.id} onClose={vi.fn()} />, { known: { sessions: [session] } })
  return screen.findByText('JupyterLab')
}

afterEach(() => vi.unstubAllGlobals())

describe('the output of notebooks without a page', () => {
  it.each<[string, Partial<App>, string | null]>([
    ['is kept', { kept: true }, 'Output is kept while no page is open'],
    [
      'is not kept of a notebook',
      { kept: true, notKept: notKept('notKeptEncrypted') },
      'Output of a.ipynb is not kept while no page is open: the kernel encrypts its messages.',
    ],
    [
      'is not kept for a reason of a newer agent',
      { kept: true, notKept: notKept('notKeptNewer') },
      'Some output is not kept while no page is open.',
    ],
    ['is unknown', {}, null],
  ])('%s', async (_, said, text) => {
    await show(said)
    expect(screen.queryByText(/while no page is open/)?.textContent ?? null).toBe(text)
  })
})
