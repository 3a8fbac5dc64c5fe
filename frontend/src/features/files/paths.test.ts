import { describe, expect, it } from 'vitest'
import { parseNotebook } from './Notebook'
import { crumbsOf, isNumeric, movable, nameFault, parseTable, previewKind, visible } from './paths'
import { uploadKey } from './uploads'

describe('paths of files', () => {
  it('are read part by part, whatever bytes their names have', () => {
    expect(crumbsOf('a%20b%2Fc%2525%2F%FF')).toEqual([
      { name: 'a b', path: 'a%20b' },
      { name: 'c%25', path: 'a%20b%2Fc%2525' },
      { name: '%FF', path: 'a%20b%2Fc%2525%2F%FF' },
    ])
    expect(crumbsOf('')).toEqual([])
  })
  it('are shown on one line, with nothing hidden in them', () => {
    expect(['line\nbreak\t', 'evil\u202egnp.exe', 'zero\u200bwidth', '한글 é 😀'].map(visible)).toEqual([
      'line\\nbreak\\t',
      'evil\\u{202e}gnp.exe',
      'zero\\u{200b}width',
      '한글 é 😀',
    ])
  })
  it('have names that a file can have', () => {
    expect(['', '..', 'a/b', 'x'.repeat(256), 'there', 'new'].map((name) => nameFault(name, ['there']))).toEqual([
      'nameEmpty',
      'nameEmpty',
      'nameSlash',
      'nameLong',
      'nameTaken',
      '',
    ])
  })
})

describe('previews', () => {
  it('go by the ending of the name', () => {
    expect(['a.PNG', 'b.csv', 'c.ipynb', 'Makefile', 'd.py'].map(previewKind)).toEqual([
      'image',
      'csv',
      'notebook',
      'text',
      'text',
    ])
  })
  it('read tables with quotes and line breaks', () => {
    expect(parseTable('a,b\r\n"x, ""y""","1\n2"\n,', ',', 10)).toEqual([
      ['a', 'b'],
      ['x, "y"', '1\n2'],
      ['', ''],
    ])
    expect(parseTable('a\nb\nc', ',', 2)).toEqual([['a'], ['b']])
    const rows = [
      ['1.5', 'plus', '', '7'],
      ['-2e3', '3', '', ' '],
    ]
    expect([0, 1, 2, 3, 4].map((column) => isNumeric(rows, column))).toEqual([true, false, false, true, false])
  })
  it('read notebooks without taking anything for HTML', () => {
    const cells = parseNotebook(
      JSON.stringify({
        cells: [
          {
            cell_type: 'code',
            source: ['x', '=1'],
            outputs: [{ data: { 'text/html': '<b>', 'text/plain': '1' } }, { data: { 'image/png': 'AA==' } }],
          },
        ],
      }),
    )
    expect(cells).toEqual([{ kind: 'code', source: 'x=1', texts: ['1'], pictures: ['data:image/png;base64,AA=='] }])
    expect([parseNotebook('{'), parseNotebook('{}')]).toEqual([null, null])
  })
})

describe('the key of an upload', () => {
  it('is the same for the same file at the same place, and fit for the server', () => {
    const file = { size: 5, lastModified: 1 }
    expect(uploadKey({ folder: 'f' }, 'a', file)).toBe(uploadKey({ folder: 'f' }, 'a', file))
    expect(uploadKey({ folder: 'f' }, 'a', file)).not.toBe(uploadKey({ folder: 'f' }, 'b', file))
    expect(uploadKey({ folder: 'f' }, 'a', file)).toMatch(/^[A-Za-z0-9]{1,64}$/)
  })
})

describe('a move', () => {
  it('goes to another directory, and never into itself', () => {
    expect(movable('a', 'b')).toBe(true)
    expect(movable('b%2Fa', '')).toBe(true)
    expect(movable('a', 'ab')).toBe(true)
    for (const [path, dir] of [
      ['a', ''],
      ['b%2Fa', 'b'],
      ['a', 'a'],
      ['a', 'a%2Fb'],
    ] as const)
      expect(movable(path, dir)).toBe(false)
  })
})
