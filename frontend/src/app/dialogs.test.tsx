import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import type { ReactElement } from 'react'
import { describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent, makeSession } from '@/api/testing/session'
import type { FileInfo } from '@/api/types.gen'
import { AddAgent } from '@/features/agents/AddAgent'
import { KeyChange } from '@/features/agents/KeyChange'
import { LimitDialog } from '@/features/agents/LimitDialog'
import { RemoveDialog } from '@/features/agents/RemoveDialog'
import { SSHModal } from '@/features/apps/SSHModal'
import { Preview } from '@/features/files/Preview'
import { CompareModal } from '@/features/recipes/CompareModal'
import { EndImage } from '@/features/session/EndImage'

// The dialogs that e2e/dialogs.e2e.ts does not leave in a browser: whatever is written into them, leaving asks nothing of the server.
const lab = makeAgent({ name: 'lab', address: 'ssh://lab', local: false, live: 2 })
const session = makeSession({ id: 'aaaaaaaaaaaa', name: 'train-a' })
const kept = makeSession({ ...session, status: 'TERMINATED', endImage: { state: 'failed', name: 'train-a', ref: '', size: 0, kept: true } })
const file: FileInfo = { name: 'notes.txt', kind: 'file', size: 5, modified: '2026-01-01T00:00:00Z', mode: '644', version: 'v1' }

interface Case {
  name: string
  view: (close: () => void) => ReactElement
  /** Buttons that are pressed to open it. */
  press?: string[]
  /** Fields that are written into, by name. */
  write?: string[]
  title: string | RegExp
}

const cases: Case[] = [
  { name: 'a new agent', view: (close) => <AddAgent groups={['default']} onClose={close} onShow={vi.fn()} />, write: ['Address', 'Name'], title: /Add/ },
  { name: 'the end of an agent', view: (close) => <RemoveDialog agent={lab} reached onClose={close} />, title: /lab/ },
  { name: 'limits of a person', view: (close) => <LimitDialog agent="lab" owner="bob" limit={{}} people={[]} taken={[]} onClose={close} onSaved={vi.fn()} />, write: ['Sessions'], title: /bob/ },
  { name: 'another key of an agent', view: () => <KeyChange name="lab" local={false} />, press: ['Change the key'], title: /lab/ },
  { name: 'how ssh connects', view: (close) => <SSHModal sessionId="aaaaaaaaaaaa" onClose={close} />, title: /SSH/ },
  { name: 'two recipes', view: (close) => <CompareModal first={{ kind: 'session', id: 'aaaaaaaaaaaa' }} onClose={close} />, title: /Compare/ },
  { name: 'a file', view: (close) => <Preview place={{ folder: 'f' }} path="notes.txt" file={file} readOnly={false} onClose={close} onSaved={vi.fn()} />, title: /notes\.txt/ },
  { name: 'the end of a kept container', view: () => <EndImage session={kept} />, press: ['Drop the container'], title: /train-a/ },
]

const answers = {
  'GET /api/v1/sessions/aaaaaaaaaaaa/ssh': { installed: false, commands: [{ name: 'ssh', line: 'ssh train-a' }], fingerprint: 'SHA256:x', editor: '' },
  'GET /api/v1/folders/f/files/content': () => new Response('hello'),
}

describe('a dialog asks nothing of the server when it is left', () => {
  const ways = cases.flatMap((one) => [{ ...one, way: 'Escape' }, { ...one, way: 'its button' }])
  it.each(ways)('$name, by $way', async ({ view, press = [], write = [], title, way }) => {
    const sent = serve(answers)
    const close = vi.fn()
    const user = userEvent.setup()
    renderView(view(close), { known: { sessions: [session], agents: [lab], recents: [], operations: [] } })
    for (const name of press) await user.click(screen.getByRole('button', { name }))
    const dialog = await screen.findByRole('dialog', { name: title })
    for (const name of write) await user.type(within(dialog).getAllByLabelText(name, { exact: false })[0]!, '7')
    if (way === 'Escape') await user.keyboard('{Escape}')
    else await user.click(within(dialog).queryByRole('button', { name: 'Cancel' }) ?? within(dialog).getAllByRole('button', { name: 'Close' })[0]!)
    if (press.length === 0) await waitFor(() => expect(close).toHaveBeenCalledTimes(1))
    else await waitFor(() => expect(screen.queryByRole('dialog', { name: title })).not.toBeInTheDocument())
    expect(sent.filter((call) => call.method !== 'GET')).toEqual([])
  })
})
