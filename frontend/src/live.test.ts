import { readFileSync } from 'node:fs'
import { beforeEach, expect, it, vi } from 'vitest'

// The extension of JupyterLab that the agent hands to its sessions; see backend/agent/apps/lab.go.
const script = readFileSync('../backend/agent/apps/lab/static/remoteEntry.js', 'utf8')

interface Message {
  header: { msg_type: string; msg_id?: string; date?: string }
  parent_header?: { msg_id: string; session: string }
  content: Record<string, unknown>
}

interface Future {
  dispose: () => void
  onIOPub?: (message: Message) => void
}

/** A signal of Lumino. */
class Signal {
  #slots: ((sender: unknown, value: unknown) => void)[] = []
  connect = (slot: (sender: unknown, value: unknown) => void) => this.#slots.push(slot)
  emit = (value?: unknown) => this.#slots.forEach((slot) => slot(null, value))
}

/** A code cell as JupyterLab has it, with the texts that it shows. */
class Cell {
  shown: string[] = []
  #future: Future | undefined
  readonly model
  constructor(readonly source: string) {
    this.model = {
      type: 'code',
      executionCount: null as number | null,
      executionState: 'idle',
      sharedModel: { getSource: () => source },
    }
  }
  readonly outputArea = ((cell: Cell) => ({
    set future(value: Future) {
      cell.#future?.dispose()
      cell.#future = value
      cell.shown = []
      value.onIOPub = ({ header, content }) => {
        if (header.msg_type === 'stream') cell.shown.push(String(content.text))
        if (header.msg_type === 'clear_output') cell.shown.push('clear')
      }
    },
  }))(this)
}

const running = (text: string, more = {}) => ({
  request: 'r1',
  code: 'a',
  count: 1,
  outputs: [{ output_type: 'stream', text }],
  clearing: false,
  done: false,
  ...more,
})

const asked: URLSearchParams[] = []
let answer: (query: URLSearchParams) => unknown
let session: Record<'iopubMessage' | 'kernelChanged' | 'statusChanged' | 'connectionStatusChanged', Signal> &
  Record<string, unknown>
let cells: Cell[]

const say = (id: string, type: string, content = {}, parent = 'r1', client = 'old') =>
  session.iopubMessage.emit({
    header: { msg_type: type, msg_id: id, date: id },
    parent_header: { msg_id: parent, session: client },
    content,
  })
const print = (id: string, text: string) => say(id, 'stream', { text })
const answered = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

beforeEach(async () => {
  asked.length = 0
  vi.useFakeTimers()
  vi.stubGlobal('fetch', async (at: string) => {
    const query = new URL(at, 'http://app').searchParams
    asked.push(query)
    return { status: 200, json: async () => (query.has('shown') ? { runs: [], recent: [] } : answer(query)) }
  })
  cells = [new Cell('a\n'), new Cell('b')]
  session = {
    iopubMessage: new Signal(),
    kernelChanged: new Signal(),
    statusChanged: new Signal(),
    connectionStatusChanged: new Signal(),
    session: { kernel: { id: 'k', clientId: 'new' } },
  }
  window.eval(script)
  const container = (window as unknown as Record<string, Record<string, { get: () => Promise<() => unknown> }>>)
    ._JUPYTERLAB!['slipway-live']!
  const plugin = ((await container.get())() as { default: { activate: (app: unknown) => void } }).default
  plugin.activate({
    docRegistry: {
      addWidgetExtension: (_: string, extension: { createNew: (panel: unknown, context: unknown) => void }) =>
        extension.createNew(
          { sessionContext: session, content: { widgets: cells } },
          { path: 'x.ipynb', contentsModel: { last_modified: 'then' }, ready: Promise.resolve() },
        ),
    },
  })
  return () => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  }
})

it('shows each output of a run once, whenever it came', async () => {
  answer = () => ({ runs: [running('1')], recent: ['m1'], since: 'm1' })
  session.connectionStatusChanged.emit('connected')
  await answered()
  expect(cells[0]!.shown).toEqual(['1'])
  expect(cells[0]!.model.executionState).toBe('running')
  expect(Object.fromEntries(asked[0]!)).toEqual({ kernel: 'k', path: 'x.ipynb', saved: 'then', client: 'new' })

  // Between the first answer and the first message, some was missed; the keeper may be ahead of the page.
  answer = () => ({ runs: [running('1234', { clearing: true })], recent: ['m2', 'm3', 'm4'], since: 'm2' })
  print('m3', '3')
  print('m4', '4')
  print('m5', '5')
  await answered()
  expect(cells[0]!.shown).toEqual(['1234', 'clear', '5'])
  expect(asked.at(-1)!.getAll('shown')).toEqual(['r1'])
  print('m1', 'sent again')
  print('m2', 'sent again')
  print('m6', '6')
  say('m7', 'stream', { text: 'of another run' }, 'r0')
  expect(cells[0]!.shown).toEqual(['1234', 'clear', '5', '6'])
  say('m8', 'status', { execution_state: 'idle' })
  expect(cells[0]!.model).toMatchObject({ executionCount: 1, executionState: 'idle' })
})

it('waits until the keeper knows the next cell', async () => {
  answer = () => ({ runs: [], recent: ['m1'], since: 'm1' })
  session.connectionStatusChanged.emit('connected')
  print('m1', '1')
  await answered()
  say('m2', 'execute_input', {}, 'r2')
  await answered()
  print('m3', '3')
  answer = () => ({ runs: [running('', { request: 'r2', code: 'b' })], recent: ['m1', 'm2'], since: 'm1' })
  say('m4', 'stream', { text: '4' }, 'r2')
  await vi.advanceTimersByTimeAsync(200)
  expect(cells[1]!.shown).toEqual(['', '4'])
  expect(cells[0]!.shown).toEqual([])
})

it('leaves a cell alone that was run again, or that there is twice', async () => {
  answer = () => ({ runs: [running('1')], recent: ['m1', 'm3', 'm4'], since: '' })
  print('m1', '1')
  await answered()
  cells[0]!.outputArea.future = { dispose: () => {} }
  print('m2', '2')
  expect(cells[0]!.shown).toEqual([])
  cells[0]!.model.executionCount = 2
  say('m3', 'execute_input')
  await answered()
  cells[0]!.model.executionCount = null
  cells.push(new Cell('a'))
  say('m4', 'execute_input')
  await answered()
  expect(cells.flatMap((cell) => cell.shown)).toEqual([])
})

it('shows that a run has ended with its kernel', async () => {
  answer = () => ({ runs: [running('1')], recent: ['m1'], since: 'm1' })
  print('m1', '1')
  await answered()
  session.statusChanged.emit('restarting')
  expect(cells[0]!.model.executionState).toBe('idle')
  print('m2', '2')
  expect(cells[0]!.shown).toEqual(['1'])
})
