import type { EnvRow } from './draft'

/** A name and the rest of its line. The value may continue on the lines below, where a quote is still open. */
const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=#'"]+)\s*=[ \t]*/

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t' }

/** Reads the value at the start of a text; the rest is what comes after its line. */
function readValue(text: string): { value: string; rest: string } {
  const double = /^"((?:[^"\\]|\\[\s\S])*)"[^\n]*\n?/.exec(text)
  if (double) {
    const value = (double[1] ?? '').replace(/\\([\s\S])/g, (_, char: string) => ESCAPES[char] ?? char)
    return { value, rest: text.slice(double[0].length) }
  }
  const single = /^'([^']*)'[^\n]*\n?/.exec(text)
  if (single) return { value: single[1] ?? '', rest: text.slice(single[0].length) }
  const line = /^[^\n]*\n?/.exec(text)?.[0] ?? ''
  return { value: line.replace(/(^|\s)#.*/, '').trim(), rest: text.slice(line.length) }
}

/**
 * Splits text with NAME=value lines, such as a .env file, into variables: quotes, "export", comments and values over
 * several lines are understood, and of one name the last counts. Null if no line of the text is an assignment; lines
 * that are none are left out.
 */
export function parseDotenv(text: string): EnvRow[] | null {
  const found = new Map<string, string>()
  let rest = text.replaceAll('\r\n', '\n')
  while (rest !== '') {
    const start = ASSIGNMENT.exec(rest)
    if (start?.[1] === undefined) {
      rest = rest.replace(/^[^\n]*\n?/, '')
      continue
    }
    const read = readValue(rest.slice(start[0].length))
    found.delete(start[1])
    found.set(start[1], read.value)
    rest = read.rest
  }
  return found.size === 0 ? null : [...found].map(([name, value]) => ({ name, value }))
}

/** Puts variables in the place of one row. A variable that has a row already changes there. */
export function putVariables(env: readonly EnvRow[], index: number, variables: readonly EnvRow[]): EnvRow[] {
  const named = new Map(variables.map((row) => [row.name, row]))
  const elsewhere = new Set(env.filter((row, i) => i !== index && named.has(row.name)).map((row) => row.name))
  const placed = variables.filter((row) => !elsewhere.has(row.name))
  return env.flatMap((row, i) => (i === index ? placed : [named.get(row.name) ?? row]))
}
