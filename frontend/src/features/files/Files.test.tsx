import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import type { FileInfo, Operation } from '@/api/types.gen'
import { Archives } from './Archives'
import { Editor, lineEnds } from './Editor'
import { Preview } from './Preview'
import { RenameField } from './RenameField'

const file: FileInfo = {
  name: 'run.sh',
  kind: 'file',
  link: false,
  size: 4,
  mode: '755',
  modified: '2026-01-01T00:00:00Z',
  version: 'v1',
}

describe('a name in its row', () => {
  const show = (rename: (name: string) => Promise<void>) => {
    const onClose = vi.fn()
    renderView(<RenameField file={file} taken={['there']} onRename={rename} onClose={onClose} />)
    return { onClose, field: screen.getByRole('textbox', { name: 'Rename run.sh' }) as HTMLInputElement }
  }

  it('is chosen without its ending, and left alone by Escape', async () => {
    const rename = vi.fn(() => Promise.resolve())
    const { field, onClose } = show(rename)
    expect(field.value.slice(field.selectionStart ?? 0, field.selectionEnd ?? 0)).toBe('run')
    await userEvent.type(field, 'other{Escape}')
    expect(onClose).toHaveBeenCalledOnce()
    expect(rename).not.toHaveBeenCalled()
  })

  it('is taken by Enter, once', async () => {
    const rename = vi.fn(() => Promise.resolve())
    const { field, onClose } = show(rename)
    await userEvent.clear(field)
    await userEvent.type(field, 'start.sh{Enter}')
    await waitFor(() => expect(onClose).toHaveBeenCalledOnce())
    expect(rename.mock.calls).toEqual([['start.sh']])
  })

  it('is not taken where it cannot be, and says why', async () => {
    const rename = vi.fn(() => Promise.resolve())
    const { field, onClose } = show(rename)
    await userEvent.clear(field)
    await userEvent.type(field, 'there{Enter}')
    expect(await screen.findByText('This name is already in use.')).toBeInTheDocument()
    expect(onClose).not.toHaveBeenCalled()
    await userEvent.tab()
    expect(onClose).toHaveBeenCalledOnce()
    expect(rename).not.toHaveBeenCalled()
  })

  it('stays open where the server refuses it', async () => {
    const { field, onClose } = show(() => Promise.reject(new Error('no')))
    await userEvent.type(field, 'x{Enter}')
    await waitFor(() => expect(field.readOnly).toBe(false))
    expect(onClose).not.toHaveBeenCalled()
  })
})

describe('the editor', () => {
  it('keeps the line ends that a text has', () => {
    expect(lineEnds('a\r\nb').written('a\nc\n')).toBe('a\r\nc\r\n')
    expect(lineEnds('a\nb').written('a\nc')).toBe('a\nc')
    expect(lineEnds('a\r\nb\n')).toMatchObject({ shown: 'a\nb\n' })
    expect(lineEnds('a\r\nb\n').written('x\n')).toBe('x\n')
  })

  it('asks before it writes over what somebody else wrote, and says where it cannot look', async () => {
    const closed = vi.fn()
    let now = () => new Response(JSON.stringify({ ...file, version: 'v2' }))
    const sent = serve({ 'GET /api/v1/folders/f/files/stat': () => now() })
    renderView(
      <Editor
        place={{ folder: 'f' }}
        path="run.sh"
        file={file}
        readOnly={false}
        text="old"
        onChanged={() => {}}
        onCancel={closed}
        onSaved={closed}
      />,
    )
    await userEvent.type(screen.getByRole('textbox', { name: 'run.sh' }), '!')
    await userEvent.click(screen.getByRole('button', { name: 'Save' }))
    const question = await screen.findByRole('dialog')
    expect(question).toHaveTextContent('The file has changed')
    await userEvent.click(within(question).getByRole('button', { name: 'Cancel' }))
    now = () => refusal(503, 'agent_call_unavailable', 'The agent is not connected.', 'Wait.')
    await userEvent.click(screen.getByRole('button', { name: 'Save' }))
    expect(await screen.findByText(/The agent is not connected/)).toBeInTheDocument()
    expect(closed).not.toHaveBeenCalled()
    expect(sent.every((call) => call.method === 'GET')).toBe(true)
  })
})

describe('a preview', () => {
  it('is of files up to a size, and offers larger ones to be fetched', async () => {
    const show = (name: string, size: number) =>
      renderView(
        <Preview
          place={{ folder: 'f' }}
          path={name}
          file={{ ...file, name, size }}
          readOnly={false}
          onClose={() => {}}
          onSaved={() => {}}
        />,
      )
    const sent = serve({ 'GET /api/v1/folders/f/files/content': () => new Response('line\n') })
    const small = show('run.log', 1024 ** 2)
    expect(await screen.findByRole('textbox', { name: 'run.log' })).toHaveValue('line\n')
    small.unmount()
    const large = show('run.log', 1024 ** 2 + 1)
    expect(screen.getByText('Files up to 1 MiB can be previewed.')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Download' })).toBeEnabled()
    large.unmount()
    show('scan.png', 40 * 1024 ** 2)
    expect(screen.getByText('Files up to 32 MiB can be previewed.')).toBeInTheDocument()
    expect(sent).toHaveLength(1)
  })
})

describe('archives', () => {
  const operation: Operation = {
    id: 'op1',
    kind: 'file-archive',
    subject: 'data.zip',
    state: 'running',
    steps: [],
    progress: { done: 512, total: 1024, rate: 100 },
    startedAt: '2026-01-01T00:00:00Z',
    revision: 1,
  }

  it('say how far they are and are cancelled', async () => {
    const sent = serve({ 'POST /api/v1/operations/op1/cancel': { ...operation, state: 'cancelled', revision: 2 } })
    renderView(<Archives />, { known: { operations: [operation, { ...operation, id: 'op2', kind: 'agent-add' }] } })
    expect(screen.getByRole('progressbar', { name: 'Archiving data.zip' })).toHaveAttribute('aria-valuenow', '50')
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    expect(sent).toHaveLength(1)
    await waitFor(() => expect(screen.queryByRole('progressbar')).not.toBeInTheDocument())
  })
})
