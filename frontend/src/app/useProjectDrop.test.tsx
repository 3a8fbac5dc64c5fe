import { act, fireEvent, screen, waitFor } from '@testing-library/react'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeAgent } from '@/api/testing/session'
import { Dialog } from '@/ui/Dialog'
import { ProjectDrop } from './ProjectDrop'
import type { Drop } from './useProjectDrop'

const title = 'Drop a folder to open it as a project'
const onlyFolder = 'Drop a single folder to open it as a project.'
const paper = new File(['text'], 'paper.txt')

function View({ onDrop, asked }: { onDrop: (drop: Drop) => void; asked: boolean }) {
  return (
    <>
      <ProjectDrop onDrop={onDrop} />
      <p>page</p>
      <p onDragOver={(event) => event.preventDefault()} onDrop={(event) => event.preventDefault()}>
        taker
      </p>
      {asked ? <Dialog title="Asked" /> : null}
    </>
  )
}

function show({ asked = false } = {}) {
  const onDrop = vi.fn()
  renderView(<View onDrop={onDrop} asked={asked} />, {
    known: { agents: [makeAgent({ name: 'local', local: true })], machines: [] },
  })
  return { onDrop, page: screen.getAllByText('page').at(-1)!, taker: screen.getAllByText('taker').at(-1)! }
}

const entryOf = (name: string, isDirectory: boolean) => ({
  name,
  isDirectory,
  isFile: !isDirectory,
  file: (done: (file: File) => void) => done(paper),
  createReader: () => {
    const batches = [[entryOf('paper.txt', false)], []]
    return { readEntries: (done: (some: unknown[]) => void) => done(batches.shift() ?? []) }
  },
})
const carry = (...entries: ReturnType<typeof entryOf>[]) => ({
  dataTransfer: {
    types: ['Files'],
    files: entries.map(() => paper),
    items: entries.map((entry) => ({ kind: 'file', webkitGetAsEntry: () => entry })),
  },
})
const directory = carry(entryOf('draft', true))
const tell = (detail: object) => act(() => window.dispatchEvent(new CustomEvent('slipway:drop', { detail })))

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

describe('a drag over the page', () => {
  it('shows where it may be dropped until it leaves, ends, or is over what takes it itself', () => {
    const { page, taker } = show()
    fireEvent.dragEnter(page, carry())
    expect(fireEvent.dragOver(page, carry())).toBe(false)
    expect(screen.getByText(title)).toBeInTheDocument()
    fireEvent.dragOver(taker, carry())
    expect(screen.queryByText(title)).toBeNull()
    fireEvent.dragOver(page, carry())
    fireEvent.dragLeave(page, carry())
    expect(screen.queryByText(title)).toBeNull()
    fireEvent.dragEnter(page, carry())
    fireEvent.dragOver(page, carry())
    fireEvent.pointerMove(page)
    expect(screen.queryByText(title)).toBeNull()
  })

  it('shows nothing for what is dragged within the page, or is no file', () => {
    const { page } = show()
    fireEvent.dragOver(page, { dataTransfer: { types: ['text/plain'] } })
    fireEvent.dragStart(page)
    fireEvent.dragOver(page, carry())
    expect(screen.queryByText(title)).toBeNull()
  })
})

describe('a drop in a browser', () => {
  it('gives the files of a directory', async () => {
    const { page, onDrop } = show()
    expect(fireEvent.drop(page, directory)).toBe(false)
    await waitFor(() =>
      expect(onDrop).toHaveBeenCalledWith({ name: 'draft', picked: [{ file: paper, dirs: ['draft'] }] }),
    )
  })

  it.each([
    ['a file', carry(entryOf('paper.txt', false))],
    ['two directories', carry(entryOf('a', true), entryOf('b', true))],
  ])('of %s says what can be dropped', async (_, carried) => {
    const { page, onDrop } = show()
    fireEvent.drop(page, carried)
    await screen.findByText(onlyFolder)
    expect(onDrop).not.toHaveBeenCalled()
  })

  it('is left to what takes it, and to a question over the page', () => {
    const { taker, onDrop } = show()
    fireEvent.drop(taker, directory)
    expect(onDrop).not.toHaveBeenCalled()
    expect(screen.queryByText(onlyFolder)).toBeNull()
    vi.spyOn(Element.prototype, 'getClientRects').mockReturnValue([{}] as unknown as DOMRectList)
    const asked = show({ asked: true })
    fireEvent.drop(asked.page, directory)
    expect(asked.onDrop).not.toHaveBeenCalled()
  })
})

describe('a drop in the window', () => {
  const inWindow = () => vi.stubGlobal('webkit', { messageHandlers: { external: {} } })

  it('opens the path that the window says, once', () => {
    inWindow()
    const { page, onDrop } = show()
    fireEvent.drop(page, directory)
    expect(onDrop).not.toHaveBeenCalled()
    tell({ path: '/home/ada/draft' })
    tell({ path: '/home/ada/draft' })
    expect(onDrop.mock.calls).toEqual([[{ path: '/home/ada/draft' }]])
  })

  it('ignores a path where a part of the page has taken the drop', () => {
    inWindow()
    const { page, taker, onDrop } = show()
    tell({ path: '/home/ada/draft' })
    fireEvent.drop(page, directory)
    fireEvent.drop(taker, directory)
    tell({ path: '/home/ada/draft' })
    expect(onDrop).not.toHaveBeenCalled()
  })

  it.each([
    ['no directory', {}, onlyFolder],
    ['a path that is not text', { unnamed: true }, 'Rename the folder: its path is not valid text.'],
  ])('says why %s is not opened', async (_, detail, text) => {
    inWindow()
    const { page } = show()
    fireEvent.drop(page, directory)
    tell(detail)
    await screen.findByText(text)
  })

  it('is taken where WebKitGTK keeps the files from the page', () => {
    inWindow()
    const { page, onDrop } = show()
    const kept = { dataTransfer: { types: ['text/uri-list', 'text/html'], files: [], items: [] } }
    fireEvent.dragEnter(page, kept)
    expect(fireEvent.dragOver(page, kept)).toBe(false)
    expect(screen.getByText(title)).toBeInTheDocument()
    fireEvent.drop(page, kept)
    tell({ path: '/home/ada/draft' })
    expect(onDrop).toHaveBeenCalledTimes(1)
  })

  it('is sent to WebView2, which knows the path', () => {
    const post = vi.fn()
    vi.stubGlobal('chrome', { webview: { postMessageWithAdditionalObjects: post } })
    const { page, onDrop } = show()
    fireEvent.drop(page, directory)
    expect(post).toHaveBeenCalledWith('file:drop:0:0', [paper])
    tell({ path: 'C:\\draft' })
    expect(onDrop).toHaveBeenCalledWith({ path: 'C:\\draft' })
  })
})
