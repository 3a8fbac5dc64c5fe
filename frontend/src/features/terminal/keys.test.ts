import { describe, expect, it } from 'vitest'
import { type Key, keyAction } from './keys'
import { cleanPaste, countLines, pasteAsks, pastePreview, pasteRuns } from './paste'

const press = (text: string): Key => {
  const parts = text.split('+')
  return {
    type: 'keydown',
    key: parts.at(-1) ?? '',
    ctrlKey: parts.includes('Ctrl'),
    shiftKey: parts.includes('Shift'),
    altKey: parts.includes('Alt'),
    metaKey: parts.includes('Cmd'),
  }
}

describe('keys', () => {
  it.each([
    ['Ctrl+Shift+C', 'copy'],
    ['Ctrl+Shift+V', 'browser'],
    ['Ctrl+Shift+F', 'find'],
    ['Shift+Insert', 'browser'],
    ['Ctrl+Insert', 'copy'],
    ['Ctrl+c', 'pass'],
    ['Ctrl+v', 'pass'],
    ['Ctrl+Shift+x', 'pass'],
    ['Ctrl+Alt+c', 'pass'],
    ['a', 'pass'],
  ])('on Linux %s means %s', (key, action) => expect(keyAction(press(key), 'linux', false)).toBe(action))

  it('copy with Ctrl+C only while something is selected', () => {
    expect(keyAction(press('Ctrl+c'), 'linux', true)).toBe('copy')
    expect(keyAction(press('Ctrl+c'), 'windows', true)).toBe('copy')
    expect(keyAction(press('Ctrl+c'), 'mac', true)).toBe('pass')
  })

  it('paste with Ctrl+V on Windows alone', () => {
    expect(keyAction(press('Ctrl+v'), 'windows', false)).toBe('browser')
  })

  it.each([
    ['Cmd+c', 'browser'],
    ['Cmd+v', 'browser'],
    ['Cmd+f', 'find'],
    ['Cmd+a', 'selectAll'],
    ['Ctrl+Shift+C', 'pass'],
  ])('on a Mac %s means %s', (key, action) => expect(keyAction(press(key), 'mac', false)).toBe(action))

  it('divide panes and go from one to another', () => {
    expect(keyAction(press('Ctrl+Shift+E'), 'linux', false)).toBe('splitRight')
    expect(keyAction(press('Ctrl+Shift+O'), 'windows', false)).toBe('splitDown')
    expect(keyAction(press('Ctrl+Shift+ArrowLeft'), 'linux', false)).toBe('left')
    expect(keyAction(press('Ctrl+ArrowLeft'), 'linux', false)).toBe('pass')
    expect(keyAction(press('Alt+ArrowUp'), 'linux', false)).toBe('pass')
    expect(keyAction(press('Cmd+Alt+ArrowUp'), 'mac', false)).toBe('up')
    expect(keyAction(press('Cmd+E'), 'mac', false)).toBe('splitRight')
  })

  it('are decided once, when they go down', () => {
    expect(keyAction({ ...press('Ctrl+Shift+C'), type: 'keyup' }, 'linux', true)).toBe('pass')
  })
})

describe('a paste', () => {
  it('cannot leave paste mode by itself', () => {
    expect(cleanPaste('a\u001b[201~rm -rf\u0007\r\nb\tc')).toBe('a[201~rm -rf\nb\tc')
  })

  it('is questioned when it would run', () => {
    expect(pasteRuns('ls', false)).toBe(false)
    expect(pasteRuns('ls\n', false)).toBe(true)
    expect(pasteRuns('a\nb', true)).toBe(false)
  })

  it('is shown in part when it is long', () => {
    expect(countLines('a\nb\n')).toBe(2)
    expect(pastePreview('1\n2\n3\n', 2)).toBe('1\n2\n…')
    expect(pastePreview('1\n2\n', 2)).toBe('1\n2')
  })

  it('is asked about as the person has chosen', () => {
    const two = 'a\nb'
    expect([pasteAsks(two, false, 'runs'), pasteAsks(two, true, 'runs'), pasteAsks('a\n', false, 'runs')]).toEqual([
      true,
      false,
      true,
    ])
    expect([pasteAsks(two, true, 'several'), pasteAsks('a', true, 'several')]).toEqual([true, false])
    expect(pasteAsks(two, false, 'never')).toBe(false)
  })
})
