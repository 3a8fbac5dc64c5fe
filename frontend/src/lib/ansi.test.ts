import { describe, expect, it } from 'vitest'
import { parseAnsi, stripAnsi } from './ansi'

const esc = '\u001b'

describe('parseAnsi', () => {
  it('leaves plain text whole', () =>
    expect(parseAnsi('plain')).toEqual([{ text: 'plain', colour: undefined, bold: false }]))
  it('colours until it is reset', () => {
    expect(parseAnsi(`${esc}[31mred${esc}[0m rest`)).toEqual([
      { text: 'red', colour: 1, bold: false },
      { text: ' rest', colour: undefined, bold: false },
    ])
  })
  it('reads bright colours and bold from one code', () => {
    expect(parseAnsi(`${esc}[1;92mok`)).toEqual([{ text: 'ok', colour: 10, bold: true }])
  })
  it('skips palette colours without taking their numbers for others', () => {
    expect(parseAnsi(`${esc}[38;5;31mx${esc}[38;2;1;31;1my`)).toEqual([
      { text: 'x', colour: undefined, bold: false },
      { text: 'y', colour: undefined, bold: false },
    ])
  })
})

describe('stripAnsi', () => {
  it('leaves only the text', () => expect(stripAnsi(`${esc}[1mA${esc}[m${esc}[32mB`)).toBe('AB'))
})
