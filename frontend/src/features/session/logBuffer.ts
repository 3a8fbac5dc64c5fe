/** One line of a log: when it was written, if that is known, and its text with colour codes. */
export interface LogLine {
  /** Number of the line in the whole log, from 1. */
  number: number
  time: string
  text: string
}

const stamp = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?/

/** Every escape sequence but colours, which stay for the view. */

const otherEscapes = /\u001b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9]|[=>78M])/g

function readLine(raw: string, number: number): LogLine {
  const match = stamp.exec(raw)
  const body = match ? raw.slice(match[0].length) : raw
  // A progress bar draws over itself with carriage returns: what stood there last counts.
  const trimmed = body.endsWith('\r') ? body.slice(0, -1) : body
  const text = trimmed.slice(trimmed.lastIndexOf('\r') + 1).replace(otherEscapes, '')
  return { number, time: match?.[1] ?? '', text }
}

/**
 * Cuts a stream of text into lines and keeps the newest of them. A line that
 * has not ended yet is shown as it stands.
 */
export class LogBuffer {
  private readonly limit: number
  private complete: LogLine[] = []
  private open = ''
  private count = 0

  constructor(limit = 100_000) {
    this.limit = limit
  }

  push(chunk: string): void {
    const parts = (this.open + chunk).split('\n')
    this.open = parts.pop() ?? ''
    for (const part of parts) this.complete.push(readLine(part, ++this.count))
    // Cutting in large pieces keeps the cost of a line constant.
    if (this.complete.length > this.limit * 1.1) this.complete = this.complete.slice(-this.limit)
  }

  /** The lines that are kept, the unfinished one last. */
  lines(): LogLine[] {
    if (this.open === '') return this.complete.slice()
    return [...this.complete, readLine(this.open, this.count + 1)]
  }

  /** How many of the first lines are no longer kept. */
  dropped(): number {
    return this.count - this.complete.length
  }
}
