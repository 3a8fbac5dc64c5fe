import type { Platform } from '@/lib/platform'

/** What a key means to the terminal before the shell sees it. */
export type KeyAction = 'copy' | 'paste' | 'find' | 'selectAll' | 'pass' | 'browser'

export interface Key {
  type: string
  key: string
  ctrlKey: boolean
  shiftKey: boolean
  altKey: boolean
  metaKey: boolean
}

/**
 * Decides who gets a key. On a Mac the Command key copies, pastes and finds, and
 * every Ctrl combination belongs to the shell. Elsewhere it is Ctrl+Shift, and
 * Ctrl+C copies while something is selected. Ctrl+V is the shell's but on Windows.
 * "browser" leaves a key to the browser, whose own paste needs no permission.
 */
export function keyAction(event: Key, platform: Platform, selected: boolean): KeyAction {
  if (event.type !== 'keydown' || event.altKey) return 'pass'
  const key = event.key.toLowerCase()
  if (platform === 'mac') {
    if (!event.metaKey || event.ctrlKey) return 'pass'
    return macAction(key, selected)
  }
  if (event.metaKey) return 'pass'
  if (key === 'insert') {
    if (event.shiftKey && !event.ctrlKey) return 'browser'
    return event.ctrlKey && !event.shiftKey ? 'copy' : 'pass'
  }
  if (!event.ctrlKey) return 'pass'
  if (event.shiftKey) return shiftedAction(key)
  if (key === 'c' && selected) return 'copy'
  return key === 'v' && platform === 'windows' ? 'browser' : 'pass'
}

function macAction(key: string, selected: boolean): KeyAction {
  switch (key) {
    case 'c':
      return selected ? 'copy' : 'browser'
    case 'f':
      return 'find'
    case 'a':
      return 'selectAll'
    default:
      return 'browser'
  }
}

function shiftedAction(key: string): KeyAction {
  switch (key) {
    case 'c':
      return 'copy'
    case 'v':
      return 'browser'
    case 'f':
      return 'find'
    case 'a':
      return 'selectAll'
    default:
      return 'pass'
  }
}

/** How a shortcut is written on this platform. */
export function shortcut(key: string, platform: Platform): string {
  return platform === 'mac' ? `⌘${key}` : `Ctrl+Shift+${key}`
}
