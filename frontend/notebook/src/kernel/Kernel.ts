import { interrupt, interruptAt, lengthAt, lineAt, sharedBytes, type Emitted, type Request, type Told } from './wire'

export type KernelState = 'fetching' | 'starting' | 'idle' | 'busy' | 'failed'

/** What a kernel tells whoever holds it. */
interface KernelEvents {
  state(state: KernelState, detail: string): void
  queued(id: string, count: number): void
  started(id: string): void
  emitted(id: string, what: Emitted): void
  ended(id: string, ok: boolean): void
  asked(id: string, prompt: string): void
}

/** One Python in a worker: cells run one after the other. */
export class Kernel {
  /** Whether a cell can be interrupted; else only all of it can be ended. */
  readonly interruptible = typeof SharedArrayBuffer === 'function' && crossOriginIsolated
  private readonly shared = this.interruptible ? new SharedArrayBuffer(sharedBytes) : null
  private readonly worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  private readonly queue: { id: string; source: string; count: number }[] = []
  private running = ''
  private ready = false
  private count = 0

  constructor(
    dir: string,
    private readonly events: KernelEvents,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<Told>) => this.hear(data)
    this.worker.onerror = (event) => events.state('failed', event.message)
    this.post({ type: 'start', dir, base: new URL('.', document.baseURI).href, shared: this.shared })
    events.state('fetching', '')
  }

  private post(request: Request): void {
    this.worker.postMessage(request)
  }

  /** Runs a cell after those that wait already. */
  run(id: string, source: string): void {
    const count = ++this.count
    this.queue.push({ id, source, count })
    this.events.queued(id, count)
    this.next()
  }

  private next(): void {
    if (!this.ready || this.running !== '') return
    const cell = this.queue.shift()
    this.events.state(cell ? 'busy' : 'idle', '')
    if (!cell) return
    this.running = cell.id
    this.events.started(cell.id)
    if (this.shared) Atomics.store(new Uint8Array(this.shared), interruptAt, 0)
    this.post({ type: 'run', ...cell })
  }

  private hear(told: Told): void {
    switch (told.type) {
      case 'progress':
        if (told.step === 'start') this.events.state('starting', '')
        break
      case 'ready':
        this.ready = true
        this.next()
        break
      case 'failed':
        this.events.state('failed', told.message)
        break
      case 'emitted':
        this.events.emitted(told.id, told.what)
        break
      case 'asked':
        this.events.asked(told.id, told.prompt)
        break
      case 'ended':
        this.running = ''
        if (!told.ok) this.forget()
        this.events.ended(told.id, told.ok)
        this.next()
    }
  }

  /** Cells that wait behind one that failed do not run. */
  private forget(): void {
    for (const { id } of this.queue.splice(0)) this.events.ended(id, false)
  }

  /** Ends the running cell with KeyboardInterrupt, and those that wait do not run. */
  interrupt(): void {
    this.forget()
    if (!this.shared) return
    Atomics.store(new Uint8Array(this.shared), interruptAt, interrupt)
    this.answer(null)
  }

  /** Gives the line that a cell waits for; null: none. */
  answer(line: string | null): void {
    if (!this.shared) return
    const words = new Int32Array(this.shared)
    if (Atomics.load(words, lengthAt) !== -1) return
    const text = new TextEncoder().encode(line ?? '').slice(0, sharedBytes - lineAt)
    new Uint8Array(this.shared).set(text, lineAt)
    Atomics.store(words, lengthAt, line === null ? -2 : text.length)
    Atomics.notify(words, lengthAt)
  }

  chdir(dir: string): void {
    this.post({ type: 'chdir', dir })
  }

  /** Ends Python at once, whatever it does. */
  end(): void {
    this.worker.terminate()
    if (this.running !== '') this.events.ended(this.running, false)
    this.forget()
  }
}
