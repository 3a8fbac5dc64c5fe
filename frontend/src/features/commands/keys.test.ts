import { describe, expect, it } from 'vitest'
import { focusOf, keyCommand, type Focus, type Press } from './keys'

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false }
const press = (key: string, more: Partial<Press> = {}): Press => ({
  ...none,
  key,
  code: /\d/.test(key) ? `Digit${key}` : `Key${key.toUpperCase()}`,
  ...more,
})
const ctrl = (key: string, more: Partial<Press> = {}) => press(key, { ctrlKey: true, ...more })
const meta = (key: string) => press(key, { metaKey: true })
const kind = (p: Press, focus: Focus = 'page', mac = false) => keyCommand(p, focus, mac)?.kind

describe('keyCommand', () => {
  it('opens the palette from the page and from fields', () => {
    expect(kind(ctrl('k'))).toBe('palette')
    expect(kind(ctrl('k'), 'field')).toBe('palette')
    expect(kind(meta('k'), 'field', true)).toBe('palette')
  })
  it('leaves every Ctrl key to a terminal but Ctrl+Shift+K', () => {
    for (const key of ['k', 'n', '1', '9']) expect(kind(ctrl(key), 'terminal')).toBeUndefined()
    expect(kind(ctrl('K', { shiftKey: true }), 'terminal')).toBe('palette')
    expect(kind(ctrl('k'), 'terminal', true)).toBeUndefined()
    expect(kind(meta('k'), 'terminal', true)).toBe('palette')
  })
  it('leaves what is typed to fields and terminals', () => {
    for (const key of ['/', '?', 'n']) {
      expect(kind(press(key), 'field')).toBeUndefined()
      expect(kind(press(key), 'terminal')).toBeUndefined()
    }
    expect(kind(press('/'))).toBe('filter')
    expect(kind(press('?', { shiftKey: true }))).toBe('help')
    expect(kind(press('n'))).toBe('new')
  })
  it('goes to a section by its place', () => {
    expect(keyCommand(ctrl('3'), 'field', false)).toEqual({ kind: 'section', place: 3 })
    expect(kind(ctrl('0'))).toBeUndefined()
  })
  it('takes nothing with Alt, which AltGr and menus use', () => {
    expect(kind(ctrl('k', { altKey: true }))).toBeUndefined()
  })
})

describe('focusOf', () => {
  it('tells terminals, fields and the rest apart', () => {
    document.body.innerHTML =
      '<div class="xterm"><textarea id="t"></textarea></div><input id="i"><input type="checkbox" id="c"><button ' +
      'id="b"></button>'
    const of = (id: string) => focusOf(document.getElementById(id))
    expect([of('t'), of('i'), of('c'), of('b'), focusOf(null)]).toEqual(['terminal', 'field', 'page', 'page', 'page'])
  })
})
