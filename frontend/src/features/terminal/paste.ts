import type { TerminalPaste } from '@/api/types.gen'

/**
 * Pasted text without what could act by itself: escape sequences, which might
 * end the program's paste mode early, and other control characters.
 */
export function cleanPaste(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f]/g, '')
}

/** How many lines a text has; a line end at the very end opens no further one. */
export function countLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length
}

/** Whether to ask before a paste, by what the person has chosen. */
export function pasteAsks(text: string, bracketed: boolean, guard: TerminalPaste): boolean {
  if (guard === 'never') return false
  return pasteRuns(text, bracketed) || (guard === 'several' && countLines(text) > 1)
}

/**
 * Whether a paste would run commands at once: it has a line end and the program at the prompt does not know pasting.
 */
export function pasteRuns(text: string, bracketed: boolean): boolean {
  return !bracketed && /[\r\n]/.test(text)
}

/** The first lines of a text, for a person to judge it. */
export function pastePreview(text: string, lines = 8): string {
  const all = text.replace(/\n$/, '').split('\n')
  return all.length <= lines ? all.join('\n') : [...all.slice(0, lines), '…'].join('\n')
}
