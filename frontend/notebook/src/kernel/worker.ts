import { mountDisk, remoteDisk, type EmscriptenFS } from './drive'
import source from './kernel.py?raw'
import { lengthAt, lineAt, waitAt, type Emitted, type Request, type Told } from './wire'

// Python has this thread for itself: a cell that computes leaves the page alone.

interface Scope {
  onmessage: ((event: MessageEvent<Request>) => void) | null
  postMessage(message: Told): void
  location: Location
}

interface Python {
  version: string
  FS: EmscriptenFS
  runPython(code: string, options?: { globals?: unknown }): unknown
  toPy(value: unknown): { get(name: string): unknown }
  registerJsModule(name: string, module: object): void
  setInterruptBuffer(buffer: Uint8Array): void
}

type Load = (options: { indexURL: string; env: Record<string, string>; packages: string[] }) => Promise<Python>

const scope = self as unknown as Scope
const home = '/home/work'
/** How many pieces of text may go out at once, and how long that counts, in ms. */
const burst = 40
const window = 30
/** How much one cell may print, in characters: a page that shows more does not answer. */
const mostPrinted = 1 << 20

let execute: ((source: string, count: number) => Promise<boolean>) | undefined
let python: Python | undefined
let words: Int32Array | undefined
let bytes: Uint8Array | undefined
let running = ''

const tell = (message: Told) => scope.postMessage(message)

/** Gathers what is printed, so that a loop that prints does not flood the page. */
class Printer {
  private name: 'stdout' | 'stderr' = 'stdout'
  private text = ''
  private since = 0
  private sent = 0
  private printed = 0

  begin(): void {
    this.printed = 0
  }

  print(name: 'stdout' | 'stderr', text: string): void {
    if (this.printed > mostPrinted) return
    this.printed += text.length
    if (name !== this.name) this.flush()
    this.name = name
    this.text += this.printed > mostPrinted ? `${text.slice(0, 2000)}\n[…]\n` : text
    const now = performance.now()
    if (now - this.since > window) [this.since, this.sent] = [now, 0]
    if (this.sent < burst) this.flush()
  }

  flush(): void {
    if (this.text === '') return
    this.sent++
    emit({ type: 'stream', name: this.name, text: this.text })
    this.text = ''
  }
}

const printer = new Printer()

function emit(what: Emitted): void {
  tell({ type: 'emitted', id: running, what })
}

/** Sleeps without a turn of the processor where memory is shared, else with. */
function pause(ms: number): void {
  printer.flush()
  if (words) {
    Atomics.wait(words, waitAt, 0, ms)
    return
  }
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Asks the person for a line and waits for it; null: there is none. */
function ask(prompt: string): string | null {
  printer.flush()
  if (!words || !bytes) return null
  Atomics.store(words, lengthAt, -1)
  tell({ type: 'asked', id: running, prompt })
  while (Atomics.wait(words, lengthAt, -1) === 'ok' && Atomics.load(words, lengthAt) === -1);
  const length = Atomics.load(words, lengthAt)
  return length < 0 ? null : new TextDecoder().decode(bytes.slice(lineAt, lineAt + length))
}

async function start(request: Request & { type: 'start' }): Promise<void> {
  tell({ type: 'progress', step: 'fetch' })
  const indexURL = new URL(`${__PYTHON__}/`, request.base).href
  const { loadPyodide } = (await import(/* @vite-ignore */ `${indexURL}pyodide.mjs`)) as { loadPyodide: Load }
  const loaded = await loadPyodide({ indexURL, env: { HOME: home, USER: 'work', LANG: 'C.UTF-8' }, packages: [] })
  tell({ type: 'progress', step: 'start' })
  mountDisk(loaded.FS, remoteDisk(request.base), home)
  loaded.FS.chdir(`${home}/${request.dir}`)
  if (request.shared) {
    words = new Int32Array(request.shared)
    bytes = new Uint8Array(request.shared)
    loaded.setInterruptBuffer(bytes)
  }
  loaded.registerJsModule('_slipway', {
    stream: (name: 'stdout' | 'stderr', text: string) => printer.print(name, text),
    emit: (json: string) => {
      printer.flush()
      emit(JSON.parse(json) as Emitted)
    },
    pause,
    ask,
  })
  const globals = loaded.toPy({ __name__: 'slipway_kernel' })
  loaded.runPython(source, { globals })
  execute = globals.get('execute') as typeof execute
  python = loaded
  tell({ type: 'ready', version: String(loaded.runPython('import sys; sys.version.split()[0]')) })
}

async function run({ id, source: cell, count }: Request & { type: 'run' }): Promise<void> {
  running = id
  printer.begin()
  let ok = false
  try {
    ok = (await execute?.(cell, count)) ?? false
  } catch (error) {
    emit({ type: 'error', ename: 'Error', evalue: String(error), traceback: [String(error)] })
  }
  printer.flush()
  tell({ type: 'ended', id, ok })
}

scope.onmessage = ({ data }) => {
  if (data.type === 'start') start(data).catch((error: unknown) => tell({ type: 'failed', message: String(error) }))
  else if (data.type === 'run') void run(data)
  else python?.FS.chdir(`${home}/${data.dir}`)
}
