import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { Bot } from 'lucide-react'
import type { ReactElement } from 'react'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent, makeSession } from '@/api/testing/session'
import type { FileInfo, Folder, Preset } from '@/api/types.gen'
import { AddAgent } from '@/features/agents/AddAgent'
import { AgentDrawer } from '@/features/agents/AgentDrawer'
import { KeyChange } from '@/features/agents/KeyChange'
import { LimitDialog } from '@/features/agents/LimitDialog'
import { PairedClients } from '@/features/agents/PairedClients'
import { PersonLimits } from '@/features/agents/PersonLimits'
import { RemoveDialog } from '@/features/agents/RemoveDialog'
import { SSHModal } from '@/features/apps/SSHModal'
import { CheatSheet } from '@/features/commands/CheatSheet'
import { Palette } from '@/features/commands/Palette'
import { Preview } from '@/features/files/Preview'
import { EMPTY_DRAFT } from '@/features/launcher/draft'
import { shownIssues } from '@/features/launcher/issueText'
import { PresetField } from '@/features/launcher/PresetField'
import { SubPathPicker } from '@/features/launcher/SubPathPicker'
import { NoticesDrawer } from '@/features/notifications/NoticesDrawer'
import { CompareModal } from '@/features/recipes/CompareModal'
import { EndImage } from '@/features/session/EndImage'
import { SessionDrawer } from '@/features/session/SessionDrawer'
import { LinkQuestion } from '@/features/terminal/LinkQuestion'
import { SearchAll } from '@/features/terminal/SearchAll'
import { SessionFiles } from './SessionFiles'

// The dialogs that e2e/dialogs.e2e.ts does not leave in a browser: whatever is written into them, leaving asks nothing
// of the server.
const lab = makeAgent({ name: 'lab', address: 'ssh://lab', local: false, live: 2 })
const labRow = {
  agent: lab,
  machine: undefined,
  total: undefined,
  promised: undefined,
  load: undefined,
  operation: undefined,
}
const session = makeSession({ id: 'aaaaaaaaaaaa', name: 'train-a' })
const kept = makeSession({
  ...session,
  status: 'TERMINATED',
  endImage: { state: 'failed', name: 'train-a', ref: '', size: 0, kept: true },
})
const file: FileInfo = {
  name: 'notes.txt',
  kind: 'file',
  size: 5,
  modified: '2026-01-01T00:00:00Z',
  mode: '644',
  version: 'v1',
}
const folder: Folder = {
  id: 'f',
  name: 'corpus',
  agent: 'local',
  owner: 'me',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state: 'ready',
  usedBy: [],
  createdAt: '2026-01-01T00:00:00Z',
}
const preset: Preset = {
  id: 'p1',
  name: 'half a card',
  resources: { cpu: 4, memory: 8 * 1024 ** 3 },
  builtin: false,
  accelerator: { shares: 500 },
}

/** What a dialog does when it is answered, and must not do when it is left. */
const never = vi.fn()
const presets = (
  <PresetField
    draft={{ ...EMPTY_DRAFT, image: 'python:3.12', cpu: 3 }}
    change={never}
    issues={shownIssues([], new Set())}
  />
)

interface Case {
  name: string
  view: (close: () => void) => ReactElement
  /** Buttons that are pressed to open it. */
  press?: string[]
  /** Fields that are written into, by name. */
  write?: string[]
  title: string | RegExp
  /** It has no button to leave, as a palette has none. */
  keysOnly?: boolean
}

const cases: Case[] = [
  {
    name: 'a new agent',
    view: (close) => <AddAgent groups={['default']} onClose={close} onShow={never} />,
    write: ['Address', 'Name'],
    title: /Add/,
  },
  {
    name: 'an agent',
    view: (close) => <AgentDrawer name="lab" row={labRow} groups={[]} onClose={close} onRenamed={never} />,
    title: 'lab',
  },
  { name: 'the end of an agent', view: (close) => <RemoveDialog agent={lab} reached onClose={close} />, title: /lab/ },
  {
    name: 'the end of a device',
    view: () => <PairedClients name="lab" reached login />,
    press: ['Revoke laptop'],
    title: 'Revoke laptop?',
  },
  {
    name: 'limits of a person',
    view: (close) => (
      <LimitDialog agent="lab" owner="bob" limit={{}} people={[]} taken={[]} onClose={close} onSaved={never} />
    ),
    write: ['Sessions'],
    title: /bob/,
  },
  {
    name: 'the end of limits',
    view: () => <PersonLimits name="lab" reached />,
    press: ['Remove the limits of bob'],
    title: 'Remove the limits of bob?',
  },
  {
    name: 'another key of an agent',
    view: () => <KeyChange name="lab" local={false} />,
    press: ['Change key'],
    title: /lab/,
  },
  { name: 'how ssh connects', view: (close) => <SSHModal sessionId="aaaaaaaaaaaa" onClose={close} />, title: /SSH/ },
  {
    name: 'two recipes',
    view: (close) => <CompareModal first={{ kind: 'session', id: 'aaaaaaaaaaaa' }} onClose={close} />,
    title: /Compare/,
  },
  {
    name: 'a file',
    view: (close) => (
      <Preview place={{ folder: 'f' }} path="notes.txt" file={file} readOnly={false} onClose={close} onSaved={never} />
    ),
    title: /notes\.txt/,
  },
  {
    name: 'a session',
    view: (close) => <SessionDrawer id="aaaaaaaaaaaa" onClose={close} onAgain={never} />,
    title: 'train-a',
  },
  {
    name: 'the files of a session',
    view: (close) => <SessionFiles id="aaaaaaaaaaaa" onClose={close} />,
    title: 'Files · train-a',
  },
  {
    name: 'the end of a kept container',
    view: () => <EndImage session={kept} />,
    press: ['Delete container'],
    title: /train-a/,
  },
  {
    name: 'what is mounted of a folder',
    view: (close) => <SubPathPicker folder={folder} start="" onPick={never} onClose={close} />,
    write: ['Filter'],
    title: 'Part of corpus to mount',
  },
  { name: 'the presets', view: () => presets, press: ['Rename or delete presets'], title: 'My presets' },
  {
    name: 'the end of a preset',
    view: () => presets,
    press: ['Rename or delete presets', 'Delete preset half a card'],
    title: 'Delete the preset half a card?',
  },
  { name: 'the notifications', view: (close) => <NoticesDrawer onClose={close} />, title: 'Notifications' },
  {
    name: 'the palette',
    view: (close) => (
      <Palette commands={[{ id: 'x', group: 'Do', label: 'Do it', icon: Bot, run: never }]} onClose={close} />
    ),
    write: ['Search for'],
    title: /./,
    keysOnly: true,
  },
  {
    name: 'the keys',
    view: (close) => <CheatSheet sections={['Sessions']} mac={false} onClose={close} />,
    title: 'Keyboard shortcuts',
  },
  {
    name: 'a link of a shell',
    view: (close) => (
      <LinkQuestion
        session="aaaaaaaaaaaa"
        link={{ href: 'https://truth.test/', host: 'truth.test', inside: false }}
        onClose={close}
      />
    ),
    title: /truth\.test/,
  },
  {
    name: 'a search in all shells',
    view: () => <SearchAll session="aaaaaaaaaaaa" running labelOf={() => 'shell 1'} onShow={never} />,
    press: ['Search all shells'],
    write: ['Search text'],
    title: 'Search all shells',
  },
]

const answers = {
  'GET /api/v1/sessions/aaaaaaaaaaaa/ssh': {
    installed: false,
    commands: [{ name: 'ssh', line: 'ssh train-a' }],
    fingerprint: 'SHA256:x',
    editor: '',
  },
  'GET /api/v1/sessions/aaaaaaaaaaaa/files': { entries: [], total: 0 },
  'GET /api/v1/folders/f/files': { entries: [], total: 0 },
  'GET /api/v1/folders/f/files/content': () => new Response('hello'),
  'GET /api/v1/agents/lab/clients': [
    {
      name: 'laptop',
      fingerprint: 'SHA256:x',
      owner: 'bob',
      role: 'user',
      this: false,
      addedAt: '2026-01-01T00:00:00Z',
    },
  ],
  'GET /api/v1/agents/lab/limits': { limits: { bob: { sessions: 2 } } },
  'GET /api/v1/presets': [preset],
}
const known = { sessions: [session], agents: [lab], recents: [], operations: [], presets: [preset] }

// Under test antd gives everything one id: titles would name each other's dialogs, and Escape would leave the wrong
// one.
beforeEach(() => void vi.stubEnv('NODE_ENV', 'development'))
afterEach(() => void vi.unstubAllEnvs())

const gone = (title: string | RegExp) =>
  waitFor(() => expect(screen.queryByRole('dialog', { name: title })).not.toBeInTheDocument())

describe('a dialog asks nothing of the server when it is left', () => {
  beforeEach(() => never.mockClear())
  const ways = cases.flatMap((one) => [
    { ...one, way: 'Escape' },
    ...(one.keysOnly ? [] : [{ ...one, way: 'its button' }]),
  ])
  it.each(ways)('$name, by $way', async ({ view, press = [], write = [], title, way }) => {
    const sent = serve(answers)
    const close = vi.fn()
    const user = userEvent.setup()
    renderView(view(close), { known })
    for (const name of press) await user.click(await screen.findByRole('button', { name }))
    const dialog = await screen.findByRole('dialog', { name: title })
    // In a browser the dialog lies under the pointer now: the button's tip goes, which Escape would leave first.
    await user.hover(dialog)
    await waitFor(() => expect(document.querySelector('.ant-tooltip:not(.ant-tooltip-hidden)')).toBeNull())
    for (const name of write) await user.type(within(dialog).getAllByLabelText(name, { exact: false })[0]!, '7')
    if (way === 'Escape') await user.keyboard('{Escape}')
    else
      await user.click(
        within(dialog).queryByRole('button', { name: 'Cancel' }) ??
          within(dialog).getAllByRole('button', { name: 'Close' })[0]!,
      )
    if (press.length === 0) await waitFor(() => expect(close).toHaveBeenCalledTimes(1))
    else await gone(title)
    expect(sent.filter((call) => call.method !== 'GET')).toEqual([])
    expect(never).not.toHaveBeenCalled()
  })

  it.each(['Escape', 'Keep editing'])('what is written and not saved stays, by %s', async (way) => {
    const sent = serve(answers)
    const user = userEvent.setup()
    renderView(
      <Preview place={{ folder: 'f' }} path="notes.txt" file={file} readOnly={false} onClose={never} onSaved={never} />,
    )
    const text = await screen.findByRole('textbox', { name: 'notes.txt' })
    await user.type(text, ' there{Escape}')
    const question = await screen.findByRole('dialog', { name: 'Close without saving?' })
    if (way === 'Escape') await user.keyboard('{Escape}')
    else await user.click(within(question).getByRole('button', { name: way }))
    await gone('Close without saving?')
    expect(text).toHaveValue('hello there')
    expect(sent.filter((call) => call.method !== 'GET')).toEqual([])
    expect(never).not.toHaveBeenCalled()
  })
})
