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

function show(folders: unknown, several = false, start: Partial<Draft> = {}) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, ...start })
    return (
      <>
        <StorageStep
          draft={draft}
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
  const sent = serve({ 'GET /api/v1/folders': folders })
  const agents = several ? [makeAgent(), makeAgent({ name: 'lab', local: false, address: 'ssh://lab' })] : [makeAgent()]
  renderView(<Form />, { known: { agents, machines: agents.map((a) => makeMachine({ agent: a.name })) } })
  return sent
}

const says = (text: string) => waitFor(() => expect(screen.getByRole('status')).toHaveTextContent(text))

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
    expect(screen.getByRole('checkbox', { name: 'Mount data' })).toBeChecked()
    expect(screen.queryByRole('checkbox', { name: 'Mount data · local' })).not.toBeInTheDocument()
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
