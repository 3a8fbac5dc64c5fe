import { inside } from '@/api/files'

/** One step of a breadcrumb: its name as a person reads it, and its encoded path. */
interface Crumb {
  name: string
  path: string
}

/** A name as a person reads it; bytes that are no text stay encoded. */
function readable(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

/** Characters that break lines, hide, or turn the text around. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A name as it is shown: on one line, in its own order, with nothing hidden in it. */
export function visible(name: string): string {
  return name.replace(unseen, (c) => short[c] ?? `\\u{${c.codePointAt(0)?.toString(16) ?? ''}}`)
}

/** The directories on the way to an encoded path. */
export function crumbsOf(path: string): Crumb[] {
  const crumbs: Crumb[] = []
  for (const part of path.split('%2F').filter(Boolean)) {
    crumbs.push({ name: visible(readable(part)), path: inside(crumbs[crumbs.length - 1]?.path ?? '', part) })
  }
  return crumbs
}

/** Whether what is at an encoded path can be moved to a directory: to another than its own, and never into itself. */
export const movable = (path: string, dir: string): boolean =>
  dir !== path.split('%2F').slice(0, -1).join('%2F') && !`${dir}%2F`.startsWith(`${path}%2F`)

/** What is wrong with a name for a file, as the key of its text; "" where it is fine. */
export function nameFault(
  name: string,
  taken: readonly string[],
): '' | 'nameEmpty' | 'nameSlash' | 'nameLong' | 'nameTaken' {
  if (name === '' || name === '.' || name === '..') return 'nameEmpty'
  if (/[/\0]/.test(name)) return 'nameSlash'
  if (new TextEncoder().encode(name).length > 255) return 'nameLong'
  return taken.includes(name) ? 'nameTaken' : ''
}

type PreviewKind = 'image' | 'csv' | 'notebook' | 'text'

const images: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  svg: 'image/svg+xml',
}

const ending = (name: string) => /\.([^.]+)$/.exec(name.toLowerCase())?.[1] ?? ''
export const imageType = (name: string): string | undefined => images[ending(name)]

/** How the content of a file is shown. */
export function previewKind(name: string): PreviewKind {
  if (imageType(name)) return 'image'
  if (['csv', 'tsv'].includes(ending(name))) return 'csv'
  return ending(name) === 'ipynb' ? 'notebook' : 'text'
}

/** Reads a table as RFC 4180 has it, at most so many rows. */
export function parseTable(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let quoted = false
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text[i] ?? ''
    if (quoted) {
      if (c !== '"') cell += c
      else if (text[i + 1] === '"') cell += text[++i] ?? ''
      else quoted = false
    } else if (c === '"' && cell === '') quoted = true
    else if (c === separator) {
      row.push(cell)
      cell = ''
    } else if (c === '\n') {
      rows.push([...row, cell.replace(/\r$/, '')])
      row = []
      cell = ''
    } else cell += c
  }
  if (rows.length < most && (cell !== '' || row.length > 0)) rows.push([...row, cell])
  return rows
}

/** Whether a column of a table holds numbers and nothing else, but for what is left empty. */
export function isNumeric(rows: readonly string[][], column: number): boolean {
  const cells = rows.map((row) => row[column] ?? '').filter((cell) => cell.trim() !== '')
  return cells.length > 0 && cells.every((cell) => Number.isFinite(Number(cell)))
}
