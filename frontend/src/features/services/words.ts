import type { StartAction } from '@/api/types.gen'

const plain = /^[A-Za-z0-9_@%+=:,./{}-]+$/

/** Writes an argument so that splitWords reads it back as it is. */
export function quoteWord(word: string): string {
  return plain.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function joinWords(words: readonly string[]): string {
  return words.map(quoteWord).join(' ')
}

/**
 * Splits a command line into program and arguments as a shell does with quotes and backslashes. Nothing is expanded,
 * since no shell runs it. Undefined: a quote is not closed.
 */
export function splitWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? ''
    const next = text[i + 1] ?? ''
    if (quote === "'") {
      if (c === quote) quote = ''
      else word += c
    } else if (c === '\\' && (quote === '' || next === '"' || next === '\\')) {
      // A backslash at the end of a line continues it.
      if (next !== '\n') word = (word ?? '') + next
      i++
    } else if (quote === '"') {
      if (c === quote) quote = ''
      else word += c
    } else if (c === "'" || c === '"') {
      quote = c
      word ??= ''
    } else if (/\s/.test(c)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      word = (word ?? '') + c
    }
  }
  if (quote !== '') return undefined
  if (word !== undefined) words.push(word)
  return words
}

/** Arguments by line: the program with what comes before the first flag, then each flag with its value. */
export function grouped(argv: readonly string[]): string[][] {
  const lines: string[][] = []
  for (const word of argv) {
    const last = lines.at(-1)
    const takes = last && (last[0]?.startsWith('-') ? last.length === 1 : lines.length === 1)
    if (takes && !word.startsWith('-')) last.push(word)
    else lines.push([word])
  }
  return lines
}

/** An action before the start in one line, as a model-definition.yaml names it. */
export const actionText = ({ action, path, command, message }: StartAction): string =>
  [action, path ? quoteWord(path) : '', command ? joinWords(command) : '', message].filter(Boolean).join(' ')
