import type { Platform } from '@/lib/platform'

/** What a key means to the terminal before the shell sees it. */
export type KeyAction = 'copy' | 'paste' | 'find' | 'selectAll' | 'splitRight' | 'splitDown' | Move | 'pass' | 'browser'

/** To the pane in that direction. */
export type Move = 'left' | 'right' | 'up' | 'down'

export interface Key {
  type: string
  key: string
  ctrlKey: boolean
  shiftKey: boolean
  altKey: boolean
  metaKey: boolean
}

const moves: Readonly<Record<string, Move>> = {
  arrowleft: 'left',
  arrowright: 'right',
  arrowup: 'up',
  arrowdown: 'down',
}

/**
 * Decides who gets a key. On a Mac the Command key copies, pastes and finds, and
 * every Ctrl combination belongs to the shell. Elsewhere it is Ctrl+Shift, and
 * Ctrl+C copies while something is selected. Ctrl+V is the shell's but on Windows.
 * "browser" leaves a key to the browser, whose own paste needs no permission.
 */
export function keyAction(event: Key, platform: Platform, selected: boolean): KeyAction {
  if (event.type !== 'keydown') return 'pass'
  const key = event.key.toLowerCase()
  const move = moves[key]
  if (move && (platform === 'mac' ? event.metaKey && event.altKey : event.ctrlKey && event.shiftKey && !event.altKey))
    return move
  if (event.altKey) return 'pass'
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
    case 'e':
      return 'splitRight'
    case 'o':
      return 'splitDown'
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
    case 'e':
      return 'splitRight'
    case 'o':
      return 'splitDown'
    default:
      return 'pass'
  }
}

/** How a shortcut is written on this platform. */
export function shortcut(key: string, platform: Platform): string {
  return platform === 'mac' ? `⌘${key}` : `Ctrl+Shift+${key}`
}
