// Notebooks as files: Jupyter's format, version 4. What is not understood here
// is kept as it is.

/** Forms of one thing by their types: texts, or JSON. */
export type Bundle = Record<string, unknown>

export type Output =
  | { output_type: 'stream'; name: string; text: string }
  | { output_type: 'display_data'; data: Bundle; metadata: object }
  | { output_type: 'execute_result'; data: Bundle; metadata: object; execution_count: number | null }
  | { output_type: 'error'; ename: string; evalue: string; traceback: string[] }

export interface Cell {
  /** Of this page; also the file's where the file has one. */
  id: string
  type: 'code' | 'markdown' | 'raw'
  source: string
  outputs: Output[]
  count: number | null
  /** Everything else that the file says of the cell. */
  rest: Record<string, unknown>
}

export interface Notebook {
  cells: Cell[]
  minor: number
  rest: Record<string, unknown>
}

/** Fails where a file is no notebook that this page can show. */
export class FormatError extends Error {
  constructor(readonly reason: 'json' | 'version' | 'shape') {
    super(reason)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Texts are stored as one, or as a list of lines. */
const joined = (value: unknown): string =>
  Array.isArray(value) ? value.join('') : typeof value === 'string' ? value : ''

const lines = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

export const newID = (): string => crypto.randomUUID?.().slice(0, 8) ?? Math.random().toString(36).slice(2, 10)

export const newCell = (type: Cell['type'], source = ''): Cell => ({
  id: newID(),
  type,
  source,
  outputs: [],
  count: null,
  rest: { metadata: {} },
})

export const newNotebook = (): Notebook => ({
  cells: [newCell('code')],
  minor: 5,
  rest: {
    metadata: {
      kernelspec: { display_name: 'Python 3', language: 'python', name: 'python3' },
      language_info: { name: 'python' },
    },
  },
})

function textual(kind: string): boolean {
  return !/[/+]json$/.test(kind)
}

function parseBundle(value: unknown): Bundle {
  if (!isObject(value)) return {}
  return Object.fromEntries(Object.entries(value).map(([kind, data]) => [kind, textual(kind) ? joined(data) : data]))
}

function parseOutput(value: unknown): Output[] {
  if (!isObject(value)) return []
  const metadata = isObject(value.metadata) ? value.metadata : {}
  switch (value.output_type) {
    case 'stream':
      return [{ output_type: 'stream', name: String(value.name), text: joined(value.text) }]
    case 'display_data':
      return [{ output_type: 'display_data', data: parseBundle(value.data), metadata }]
    case 'execute_result':
      return [
        {
          output_type: 'execute_result',
          data: parseBundle(value.data),
          metadata,
          execution_count: typeof value.execution_count === 'number' ? value.execution_count : null,
        },
      ]
    case 'error':
      return [
        {
          output_type: 'error',
          ename: String(value.ename),
          evalue: String(value.evalue),
          traceback: Array.isArray(value.traceback) ? value.traceback.map(String) : [],
        },
      ]
    default:
      return []
  }
}

function parseCell(value: unknown): Cell {
  if (!isObject(value)) throw new FormatError('shape')
  const { cell_type, source, outputs, execution_count, id, ...rest } = value
  if (cell_type !== 'code' && cell_type !== 'markdown' && cell_type !== 'raw') throw new FormatError('shape')
  return {
    id: typeof id === 'string' ? id : newID(),
    type: cell_type,
    source: joined(source),
    outputs: Array.isArray(outputs) ? outputs.flatMap(parseOutput) : [],
    count: typeof execution_count === 'number' ? execution_count : null,
    rest,
  }
}

export function parseNotebook(text: string): Notebook {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new FormatError('json')
  }
  if (!isObject(value)) throw new FormatError('shape')
  const { nbformat, nbformat_minor, cells, ...rest } = value
  if (nbformat !== 4) throw new FormatError(typeof nbformat === 'number' ? 'version' : 'shape')
  if (!Array.isArray(cells)) throw new FormatError('shape')
  return { cells: cells.map(parseCell), minor: typeof nbformat_minor === 'number' ? nbformat_minor : 0, rest }
}

function writeOutput(output: Output): unknown {
  if (output.output_type === 'stream') return { name: output.name, output_type: 'stream', text: lines(output.text) }
  if (output.output_type === 'error') return output
  const data = Object.fromEntries(
    Object.entries(output.data).map(([kind, value]) => [
      kind,
      textual(kind) && typeof value === 'string' ? lines(value) : value,
    ]),
  )
  return { ...output, data }
}

function writeCell(cell: Cell, minor: number): unknown {
  const code = cell.type === 'code' ? { execution_count: cell.count, outputs: cell.outputs.map(writeOutput) } : {}
  const id = minor >= 5 ? { id: cell.id } : {}
  return { cell_type: cell.type, ...id, metadata: {}, ...cell.rest, ...code, source: lines(cell.source) }
}

/** Jupyter writes keys in their order, at every depth. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}

/** The notebook as Jupyter itself would write it: keys in order, one space a step. */
export function writeNotebook({ cells, minor, rest }: Notebook): string {
  const written = cells.map((cell) => writeCell(cell, minor))
  const whole = sorted({ metadata: {}, ...rest, cells: written, nbformat: 4, nbformat_minor: minor })
  return `${JSON.stringify(whole, null, 1)}\n`
}

/** Adds an output to those of a cell; what is printed goes on where it stopped. */
export function withOutput(outputs: Output[], output: Output): Output[] {
  const last = outputs.at(-1)
  if (output.output_type === 'stream' && last?.output_type === 'stream' && last.name === output.name) {
    return [...outputs.slice(0, -1), { ...last, text: overwritten(last.text + output.text) }]
  }
  return [...outputs, output.output_type === 'stream' ? { ...output, text: overwritten(output.text) } : output]
}

/** A carriage return takes back the line, as on a terminal: progress bars rely on it. */
export function overwritten(text: string): string {
  return text.includes('\r') ? text.replace(/\r+\n/g, '\n').replace(/[^\n]*\r(?!$)/gm, '') : text
}
