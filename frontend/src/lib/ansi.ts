/** A piece of text with its colour (0 to 15, as terminals number them) and weight. */
export interface AnsiSpan {
  text: string
  colour: number | undefined
  bold: boolean
}

const code = /\u001b\[([0-9;]*)m/g

/** Leaves every colour code out. */
export function stripAnsi(text: string): string {
  return text.replace(code, '')
}

function colourOf(n: number, before: number | undefined): number | undefined {
  if (n === 0 || n === 39) return undefined
  if (n >= 30 && n <= 37) return n - 30
  if (n >= 90 && n <= 97) return n - 82
  return before
}

/** Parts a line into pieces of one colour. Codes for backgrounds and palettes are left out. */
export function parseAnsi(text: string): AnsiSpan[] {
  const spans: AnsiSpan[] = []
  let colour: number | undefined
  let bold = false
  let last = 0
  const flush = (end: number) => {
    if (end > last) spans.push({ text: text.slice(last, end), colour, bold })
  }
  for (const match of text.matchAll(code)) {
    flush(match.index)
    last = match.index + match[0].length
    const numbers = (match[1] || '0').split(';').map(Number)
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i] ?? 0
      if (n === 38 || n === 48) {
        i += numbers[i + 1] === 5 ? 2 : 4
        continue
      }
      colour = colourOf(n, colour)
      if (n === 1) bold = true
      if (n === 0 || n === 22) bold = false
    }
  }
  flush(text.length)
  return spans
}
