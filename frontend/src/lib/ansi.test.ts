import { describe, expect, it } from 'vitest'
import { parseAnsi, stripAnsi } from './ansi'

const esc = '\u001b'

describe('parseAnsi', () => {
  it('leaves plain text whole', () => expect(parseAnsi('a <b> & c')).toEqual([{ text: 'a <b> & c' }]))
  it('colours until it is reset', () => {
    expect(parseAnsi(`${esc}[31mred${esc}[0m rest`)).toEqual([{ text: 'red', colour: 1 }, { text: ' rest' }])
  })
  it('reads bright colours and decorations from one code', () => {
    expect(parseAnsi(`${esc}[1;3;4;92mok`)).toEqual([
      { text: 'ok', colour: 10, bold: true, italic: true, underline: true },
    ])
  })
  it('reads the palette of 256 and true colours, whose numbers mean nothing else', () => {
    expect(parseAnsi(`${esc}[38;5;31mx${esc}[38;2;1;31;1my${esc}[38;5;244mz${esc}[38;5;9mr`)).toEqual([
      { text: 'x', colour: 'rgb(0 135 175)' },
      { text: 'y', colour: 'rgb(1 31 1)' },
      { text: 'z', colour: 'rgb(128 128 128)' },
      { text: 'r', colour: 9 },
    ])
  })
  it('keeps text readable on a background, and when both are exchanged', () => {
    expect(parseAnsi(`${esc}[43mon${esc}[0m ${esc}[31;44mred${esc}[0m${esc}[7mturned`)).toEqual([
      { text: 'on', colour: '#000', background: 'rgb(205 205 0)' },
      { text: ' ' },
      { text: 'red', colour: 'rgb(205 0 0)', background: 'rgb(0 0 238)' },
      { text: 'turned', colour: 'rgb(0 0 0)', background: 'rgb(229 229 229)' },
    ])
  })
  it('leaves other codes out', () =>
    expect(
      parseAnsi(`a${esc}[2Kb`)
        .map((s) => s.text)
        .join(''),
    ).toBe('ab'))
})

describe('stripAnsi', () => {
  it('leaves only the text', () => expect(stripAnsi(`${esc}[1mA${esc}[m${esc}[38;5;32mB <`)).toBe('AB <'))
})
