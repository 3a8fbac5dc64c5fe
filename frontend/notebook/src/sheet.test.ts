import { describe, expect, it } from 'vitest'
import { newCell, type Notebook } from './nbformat'
import { openSheet, reduce, type Action, type Sheet } from './sheet'

const notebook = (): Notebook => ({
  cells: [
    { ...newCell('markdown', '# a'), id: 'a' },
    { ...newCell('code', '1'), id: 'b' },
    { ...newCell('code', '2'), id: 'c' },
  ],
  minor: 5,
  rest: {},
})
const after = (sheet: Sheet, ...actions: Action[]) => actions.reduce(reduce, sheet)
const ids = (sheet: Sheet) => sheet.notebook.cells.map(({ id }) => id)
const cell = (sheet: Sheet, id: string) => sheet.notebook.cells.find((one) => one.id === id)!

describe('a sheet', () => {
  it('runs a cell from waiting to its last output', () => {
    const waiting = after(openSheet(notebook()), { do: 'queued', id: 'b', count: 1 })
    expect(waiting.stages).toEqual({ b: 'waiting' })
    const running = after(
      waiting,
      { do: 'started', id: 'b' },
      { do: 'emitted', id: 'b', what: { type: 'stream', name: 'stdout', text: 'x\n' } },
      { do: 'emitted', id: 'b', what: { type: 'result', data: { 'text/plain': '1' } } },
    )
    expect(running.stages).toEqual({ b: 'running' })
    const ended = after(running, { do: 'ended', id: 'b' })
    expect(ended.stages).toEqual({})
    expect(cell(ended, 'b')).toMatchObject({
      count: 1,
      outputs: [
        { output_type: 'stream', text: 'x\n' },
        { output_type: 'execute_result', execution_count: 1 },
      ],
    })
    expect(ended.revision).toBeGreaterThan(0)
  })
  it('keeps outputs until the next one comes where they are cleared so', () => {
    const print = (text: string): Action => ({ do: 'emitted', id: 'b', what: { type: 'stream', name: 'stdout', text } })
    const cleared = after(openSheet(notebook()), print('one'), {
      do: 'emitted',
      id: 'b',
      what: { type: 'clear', wait: true },
    })
    expect(cell(cleared, 'b').outputs).toHaveLength(1)
    expect(cell(after(cleared, print('two')), 'b').outputs).toEqual([
      { output_type: 'stream', name: 'stdout', text: 'two' },
    ])
    expect(cell(after(cleared, { do: 'emitted', id: 'b', what: { type: 'clear', wait: false } }), 'b').outputs).toEqual(
      [],
    )
  })
  it('inserts, moves, removes and brings back', () => {
    const sheet = openSheet(notebook())
    const more = after(sheet, { do: 'insert', after: 'a', type: 'code' })
    expect(ids(more)).toEqual(['a', more.at, 'b', 'c'])
    expect(ids(after(sheet, { do: 'move', id: 'c', by: -1 }))).toEqual(['a', 'c', 'b'])
    expect(ids(after(sheet, { do: 'move', id: 'c', by: 1 }))).toEqual(['a', 'b', 'c'])
    const less = after(sheet, { do: 'remove', id: 'b' })
    expect([ids(less), less.at]).toEqual([['a', 'c'], 'c'])
    expect(ids(after(less, { do: 'restore', cell: cell(sheet, 'b'), index: 1 }))).toEqual(['a', 'b', 'c'])
  })
  it('is never without a cell', () => {
    const empty = after(openSheet({ ...notebook(), cells: [] }))
    expect(empty.notebook.cells).toHaveLength(1)
    expect(after(empty, { do: 'remove', id: empty.at }).notebook.cells).toHaveLength(1)
  })
  it('asks for a line and forgets the question with the answer or the end', () => {
    const asked = after(openSheet(notebook()), { do: 'asked', id: 'b', prompt: 'name?' })
    expect(asked.asked).toEqual({ b: 'name?' })
    expect(after(asked, { do: 'answered', id: 'b' }).asked).toEqual({})
    expect(after(asked, { do: 'ended', id: 'b' }).asked).toEqual({})
  })
})
