import type { Emitted } from './kernel/wire'
import { newCell, newID, withOutput, type Cell, type Notebook, type Output } from './nbformat'

/** How a cell stands with Python. */
export type Stage = 'waiting' | 'running'

/** An open notebook: the document, and what the page knows beside it. */
export interface Sheet {
  notebook: Notebook
  /** The cell that is worked on. */
  at: string
  stages: Record<string, Stage>
  /** Lines that cells wait for, by cell. */
  asked: Record<string, string>
  /** Grows with each change of the document. */
  revision: number
  /** Whether a cell's outputs go away when the next one comes. */
  clearing: Record<string, boolean>
}

export type Action =
  | { do: 'edit'; id: string; source: string }
  | { do: 'select'; id: string }
  | { do: 'insert'; after: string | null; type: 'code' | 'markdown' }
  | { do: 'remove'; id: string }
  | { do: 'restore'; cell: Cell; index: number }
  | { do: 'move'; id: string; by: 1 | -1 }
  | { do: 'retype'; id: string; type: 'code' | 'markdown' }
  | { do: 'queued'; id: string; count: number }
  | { do: 'started'; id: string }
  | { do: 'emitted'; id: string; what: Emitted }
  | { do: 'ended'; id: string }
  | { do: 'asked'; id: string; prompt: string }
  | { do: 'answered'; id: string }
  | { do: 'clear' }
  | { do: 'load'; notebook: Notebook }

export function openSheet(notebook: Notebook): Sheet {
  const cells = notebook.cells.length > 0 ? notebook.cells : [newCell('code')]
  return { notebook: { ...notebook, cells }, at: cells[0]?.id ?? '', stages: {}, asked: {}, revision: 0, clearing: {} }
}

const without = <T>(map: Record<string, T>, id: string): Record<string, T> =>
  Object.fromEntries(Object.entries(map).filter(([key]) => key !== id))

function withCells(sheet: Sheet, cells: Cell[]): Sheet {
  return { ...sheet, notebook: { ...sheet.notebook, cells }, revision: sheet.revision + 1 }
}

const change = (sheet: Sheet, id: string, how: (cell: Cell) => Cell): Sheet =>
  withCells(
    sheet,
    sheet.notebook.cells.map((cell) => (cell.id === id ? how(cell) : cell)),
  )

function outputOf(what: Exclude<Emitted, { type: 'clear' }>, count: number | null): Output {
  switch (what.type) {
    case 'stream':
      return { output_type: 'stream', name: what.name, text: what.text }
    case 'display':
      return { output_type: 'display_data', data: what.data, metadata: {} }
    case 'result':
      return { output_type: 'execute_result', data: what.data, metadata: {}, execution_count: count }
    case 'error':
      return { output_type: 'error', ename: what.ename, evalue: what.evalue, traceback: what.traceback }
  }
}

function emitted(sheet: Sheet, id: string, what: Emitted): Sheet {
  if (what.type === 'clear') {
    if (what.wait) return { ...sheet, clearing: { ...sheet.clearing, [id]: true } }
    return change(sheet, id, (cell) => ({ ...cell, outputs: [] }))
  }
  const clears = sheet.clearing[id] === true
  const next = change(sheet, id, (cell) => ({
    ...cell,
    outputs: withOutput(clears ? [] : cell.outputs, outputOf(what, cell.count)),
  }))
  return clears ? { ...next, clearing: without(next.clearing, id) } : next
}

function insert(sheet: Sheet, after: string | null, type: 'code' | 'markdown'): Sheet {
  const cells = [...sheet.notebook.cells]
  const cell = newCell(type)
  cells.splice(after === null ? 0 : cells.findIndex(({ id }) => id === after) + 1, 0, cell)
  return { ...withCells(sheet, cells), at: cell.id }
}

function remove(sheet: Sheet, id: string): Sheet {
  const index = sheet.notebook.cells.findIndex((cell) => cell.id === id)
  const rest = sheet.notebook.cells.filter((cell) => cell.id !== id)
  const cells = rest.length > 0 ? rest : [newCell('code')]
  return { ...withCells(sheet, cells), at: (cells[index] ?? cells.at(-1))?.id ?? '', stages: without(sheet.stages, id) }
}

function move(sheet: Sheet, id: string, by: 1 | -1): Sheet {
  const cells = [...sheet.notebook.cells]
  const from = cells.findIndex((cell) => cell.id === id)
  const [cell] = cells.slice(from, from + 1)
  if (!cell || from + by < 0 || from + by >= cells.length) return sheet
  cells.splice(from, 1)
  cells.splice(from + by, 0, cell)
  return withCells(sheet, cells)
}

function restore(sheet: Sheet, cell: Cell, index: number): Sheet {
  const cells = [...sheet.notebook.cells]
  cells.splice(index, 0, { ...cell, id: cells.some(({ id }) => id === cell.id) ? newID() : cell.id })
  return { ...withCells(sheet, cells), at: cell.id }
}

/** What an action makes of a notebook. */
export function reduce(sheet: Sheet, action: Action): Sheet {
  switch (action.do) {
    case 'edit':
      return change(sheet, action.id, (cell) => ({ ...cell, source: action.source }))
    case 'select':
      return sheet.at === action.id ? sheet : { ...sheet, at: action.id }
    case 'insert':
      return insert(sheet, action.after, action.type)
    case 'remove':
      return remove(sheet, action.id)
    case 'restore':
      return restore(sheet, action.cell, action.index)
    case 'move':
      return move(sheet, action.id, action.by)
    case 'retype':
      return change(sheet, action.id, (cell) => ({ ...cell, type: action.type, outputs: [], count: null }))
    case 'queued':
      return {
        ...change(sheet, action.id, (cell) => ({ ...cell, outputs: [], count: action.count })),
        stages: { ...sheet.stages, [action.id]: 'waiting' },
      }
    case 'started':
      return { ...sheet, stages: { ...sheet.stages, [action.id]: 'running' } }
    case 'emitted':
      return emitted(sheet, action.id, action.what)
    case 'ended':
      return {
        ...sheet,
        stages: without(sheet.stages, action.id),
        asked: without(sheet.asked, action.id),
        clearing: without(sheet.clearing, action.id),
      }
    case 'asked':
      return { ...sheet, asked: { ...sheet.asked, [action.id]: action.prompt } }
    case 'answered':
      return { ...sheet, asked: without(sheet.asked, action.id) }
    case 'load':
      return { ...openSheet(action.notebook), revision: sheet.revision + 1 }
    case 'clear':
      return withCells(
        sheet,
        sheet.notebook.cells.map((cell) => ({ ...cell, outputs: [], count: null })),
      )
  }
}
