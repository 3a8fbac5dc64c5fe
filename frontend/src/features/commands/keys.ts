/** What a key press means to the whole application. */
type KeyCommand =
  { kind: 'palette' } | { kind: 'new' } | { kind: 'filter' } | { kind: 'help' } | { kind: 'section'; place: number }

export interface Press {
  key: string
  code: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

/** Where the focus is: a terminal and a field have keys of their own. */
export type Focus = 'terminal' | 'field' | 'page'

/** Fields that take no text leave the keys to the page. */
const textless = 'input[type="checkbox"], input[type="radio"], input[type="range"], input[type="button"]'

export function focusOf(target: EventTarget | null): Focus {
  if (!(target instanceof Element)) return 'page'
  if (target.closest('.xterm')) return 'terminal'
  if (target.closest(textless)) return 'page'
  return target.closest('input, textarea, select, [contenteditable], [role="combobox"], [role="spinbutton"]')
    ? 'field'
    : 'page'
}

/**
 * What a press asks of the application; undefined: it is not for it. With
 * Command on a Mac, with Ctrl elsewhere. A terminal keeps every Ctrl key, since
 * shells and editors use them all; Shift beside Ctrl opens the palette there.
 */
export function keyCommand(press: Press, focus: Focus, mac: boolean): KeyCommand | undefined {
  if (press.altKey) return undefined
  const { key } = press
  if (mac ? press.metaKey && !press.ctrlKey : press.ctrlKey && !press.metaKey) {
    if (key.toLowerCase() === 'k' && (press.shiftKey || mac || focus !== 'terminal')) return { kind: 'palette' }
    if (press.shiftKey || (focus === 'terminal' && !mac)) return undefined
    if (key.toLowerCase() === 'n') return { kind: 'new' }
    const digit = /^Digit([1-9])$/.exec(press.code)?.[1]
    return digit ? { kind: 'section', place: Number(digit) } : undefined
  }
  if (press.ctrlKey || press.metaKey || focus !== 'page') return undefined
  if (key === '/') return { kind: 'filter' }
  if (key === '?') return { kind: 'help' }
  return key === 'n' ? { kind: 'new' } : undefined
}
