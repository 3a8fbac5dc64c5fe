import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { afterEach, describe, expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine } from '@/api/testing/session'
import type { Folder } from '@/api/types.gen'
import { type Draft, EMPTY_DRAFT } from './draft'
import { shownIssues } from './issueText'
import { StorageStep } from './StorageStep'

const folder = (name: string, more: Partial<Folder> = {}): Folder => ({
  id: `${more.agent ?? 'local'}-${name}`,
  name,
  agent: 'local',
  owner: 'ada',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state: 'ready',
  createdAt: '2026-01-01T00:00:00Z',
  usedBy: [],
  ...more,
})

function show(folders: unknown, several = false, start: Partial<Draft> = {}, more: Record<string, unknown> = {}) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, ...start })
    return (
      <>
        <StorageStep
          draft={draft}
          lands="local"
          issues={shownIssues([], new Set())}
          change={(next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))}
          files={(f, close) => <button type="button" onClick={close}>{`inside ${f.name}`}</button>}
        />
        <output>
          {`${draft.agent}: ` +
            `${draft.mounts.map((m) => `${m.folder ?? m.source}${m.readOnly ? ' ro' : ''}`).join(', ')}`}
        </output>
      </>
    )
  }
  const sent = serve({ 'GET /api/v1/folders': folders, 'GET /api/v1/resources': [], ...more })
  const agents = several ? [makeAgent(), makeAgent({ name: 'lab', local: false, address: 'ssh://lab' })] : [makeAgent()]
  renderView(<Form />, {
    known: { agents, machines: agents.map((a) => makeMachine({ agent: a.name })), operations: [] },
  })
  return sent
}

const says = (text: string) => waitFor(() => expect(screen.getByRole('status')).toHaveTextContent(text))

const answer = (what: unknown) => new Response(JSON.stringify(what), { status: 200 })

describe('the data folders of a launch', () => {
  afterEach(() => document.body.replaceChildren())

  it('are ticked, unticked and looked into; what is always mounted or thrown away is not among them', async () => {
    show([
      folder('data', { permission: 'ro' }),
      folder('runs'),
      folder('.dot', { auto: true }),
      folder('old', { state: 'trashed' }),
      folder('lost', { missing: true }),
    ])
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Mount data' }))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Mount runs' }))
    await says(': data ro, runs')
    await userEvent.click(screen.getByRole('checkbox', { name: 'Mount data' }))
    await says(': runs')
    expect(screen.getByRole('checkbox', { name: 'Mount lost' })).toBeDisabled()
    expect(screen.queryByRole('checkbox', { name: /old|\.dot/ })).not.toBeInTheDocument()
    expect(screen.getByText('Auto-mounted: .dot')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Files of runs' }))
    await userEvent.click(screen.getByRole('button', { name: 'inside runs' }))
    expect(screen.queryByRole('button', { name: 'inside runs' })).not.toBeInTheDocument()
  })

  it('choose the machine that they are on', async () => {
    show([folder('data'), folder('data', { agent: 'lab' })], true)
    const box = await screen.findByRole('checkbox', { name: 'Mount data · lab' })
    expect(screen.getByRole('checkbox', { name: 'Mount data · local' })).not.toBeChecked()
    await userEvent.click(box)
    await says('lab: data')
    expect(box).toBeChecked()
    expect(screen.getByText('It has data.')).toBeInTheDocument()
    expect(screen.getByRole('checkbox', { name: 'Mount data · local' })).not.toBeChecked()
    await userEvent.click(box)
    await says('lab:')
  })

  it('stay ticked when a folder is created elsewhere, which the person chooses', async () => {
    const made = folder('fresh', { agent: 'lab' })
    const list = [folder('data'), folder('runs')]
    const sent = show(
      () => answer(list),
      true,
      {},
      {
        'POST /api/v1/folders': () => {
          list.push(made)
          return answer(made)
        },
      },
    )
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Mount data · local' }))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Mount runs · local' }))
    await userEvent.click(screen.getByRole('button', { name: 'New folder' }))
    await userEvent.click(screen.getByRole('combobox', { name: 'Machine of the new folder' }))
    await userEvent.click(await screen.findByTitle('on lab'))
    await userEvent.type(screen.getByRole('textbox', { name: 'Name of the new folder on lab' }), 'fresh{Enter}')
    await says('local: data, runs, fresh')
    expect(sent.find((s) => s.method === 'POST')?.body).toEqual({ name: 'fresh', agent: 'lab' })
    for (const name of ['data · local', 'runs · local', 'fresh · lab'])
      expect(await screen.findByRole('checkbox', { name: `Mount ${name}` })).toBeChecked()
  })

  it('are copied, used or followed where the session runs on another machine', async () => {
    const usage = { bytes: 3 * 1024 ** 2, files: 2, at: '2026-01-01T00:00:00Z' }
    const sent = show(
      [folder('data', { usage }), folder('data', { agent: 'lab' }), folder('set', { usage })],
      true,
      { agent: 'lab' },
      {
        'POST /api/v1/files/copy': {
          id: 'op1',
          kind: 'file-copy',
          subject: 'set',
          agent: 'lab',
          folder: 'set',
          state: 'cancelled',
          steps: [],
          startedAt: '2026-01-02T03:04:05Z',
          revision: 1,
        },
      },
    )
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Mount set · local' }))
    await userEvent.click(screen.getByRole('button', { name: 'Copy it to lab (3 MiB)' }))
    const copies = () => sent.filter((s) => s.path === '/api/v1/files/copy').map((s) => s.body)
    const set = { from: { folder: 'local-set' }, to: { folder: 'set', agent: 'lab' } }
    await waitFor(() => expect(copies()).toEqual([set]))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Mount data · local' }))
    await userEvent.click(screen.getByRole('button', { name: 'Copy it to lab as data-2 (3 MiB)' }))
    const data = { from: { folder: 'local-data' }, to: { folder: 'data-2', agent: 'lab' } }
    await waitFor(() => expect(copies()).toEqual([set, data]))
    await userEvent.click(screen.getByRole('button', { name: 'Use the one on lab' }))
    expect(await screen.findByRole('checkbox', { name: 'Mount data · lab' })).toBeChecked()
    await userEvent.click(screen.getByRole('button', { name: 'Run on local' }))
    await says('local: set, data')
  })

  it('are mounted as the home where they are a kept one, and the first alone', async () => {
    const home = { session: 's', name: 'notes', keep: '30d' }
    show([folder('notes', { home }), folder('more', { home })])
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Mount notes' }))
    await userEvent.click(screen.getByRole('checkbox', { name: 'Mount more' }))
    expect(screen.getByLabelText('Directory 1: path in the session')).toHaveValue('/home/work')
    expect(screen.getByLabelText('Directory 2: path in the session')).toHaveValue('')
    expect(screen.getByText('The folder notes is the home directory of this session.')).toBeInTheDocument()
  })

  it('come in pages, are found by name, and are asked for again', async () => {
    const sent = show(Array.from({ length: 300 }, (_, n) => folder(`set-${n}`)))
    await screen.findByText('300 folders')
    expect(screen.getAllByRole('checkbox', { name: /^Mount / })).toHaveLength(6)
    await userEvent.type(screen.getByRole('textbox', { name: 'Search folders' }), 'SET-299')
    expect(await screen.findByRole('checkbox', { name: 'Mount set-299' })).toBeInTheDocument()
    const before = sent.length
    await userEvent.click(screen.getByRole('button', { name: 'Refresh' }))
    await waitFor(() => expect(sent.length).toBeGreaterThan(before))
    await userEvent.type(screen.getByRole('textbox', { name: 'Search folders' }), 'x')
    expect(await screen.findByText('No folder names match.')).toBeInTheDocument()
  })

  it('say why they are not there, and are asked for again', async () => {
    show(() => refusal(503, 'agent_call_unavailable', 'The machine does not answer.', 'Wait a little.'))
    expect(await screen.findByText('The machine does not answer.')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Try again' })).toBeInTheDocument()
    // Directories of the machine need no list.
    await userEvent.click(screen.getByRole('button', { name: 'Enter a path' }))
    expect(screen.getByLabelText('Directory 1: path on the machine')).toBeInTheDocument()
  })
})

it('says that an administrator session has no folders, and makes it an ordinary one', async () => {
  show([folder('data')], false, { admin: true })
  await screen.findByText(/^An administrator session has no folders/)
  expect(screen.queryByRole('checkbox', { name: 'Mount data' })).toBeNull()
  await userEvent.click(screen.getByRole('button', { name: 'Make it an ordinary session' }))
  await screen.findByRole('checkbox', { name: 'Mount data' })
})
