import { describe, expect, it } from 'vitest'
import {
  FormatError,
  newCell,
  newNotebook,
  overwritten,
  parseNotebook,
  withOutput,
  writeNotebook,
  type Output,
} from './nbformat'

const file = {
  cells: [
    {
      attachments: { 'a.png': {} },
      cell_type: 'markdown',
      id: 'one',
      metadata: { tags: ['intro'] },
      source: ['# Title\n', 'text'],
    },
    {
      cell_type: 'code',
      execution_count: 3,
      id: 'two',
      metadata: { collapsed: true },
      outputs: [
        { name: 'stdout', output_type: 'stream', text: ['a\n', 'b\n'] },
        {
          data: { 'application/json': { x: [1, 2] }, 'image/svg+xml': ['<svg>\n', '</svg>'], 'text/plain': ['<SVG>'] },
          execution_count: 3,
          metadata: { width: 2 },
          output_type: 'execute_result',
        },
        { ename: 'ValueError', evalue: 'no', output_type: 'error', traceback: ['one', 'two'] },
      ],
      source: ['print()\n', '1'],
    },
    { cell_type: 'raw', id: 'three', metadata: {}, source: [] },
  ],
  metadata: { author: 'ada', kernelspec: { name: 'python3' } },
  nbformat: 4,
  nbformat_minor: 5,
}

describe('a notebook as a file', () => {
  it('is written as it was read, whatever else it holds', () => {
    const text = `${JSON.stringify(file, null, 1)}\n`
    expect(writeNotebook(parseNotebook(text))).toBe(text)
  })
  it('joins lines, also those that stand in one text', () => {
    const { cells } = parseNotebook(
      JSON.stringify({
        ...file,
        cells: [{ cell_type: 'code', metadata: {}, source: 'a\nb', outputs: [], execution_count: null }, file.cells[1]],
      }),
    )
    expect(cells.map((cell) => cell.source)).toEqual(['a\nb', 'print()\n1'])
    expect(cells[1]!.outputs[0]).toEqual({ output_type: 'stream', name: 'stdout', text: 'a\nb\n' })
  })
  it('has no ids where its version knows none', () => {
    const old = JSON.parse(
      writeNotebook({ ...parseNotebook(JSON.stringify({ ...file, nbformat_minor: 4 })) }),
    ) as typeof file
    expect(old.cells.map((cell) => 'id' in cell)).toEqual([false, false, false])
    expect(JSON.parse(writeNotebook(newNotebook()))).toMatchObject({
      nbformat: 4,
      nbformat_minor: 5,
      cells: [{ id: expect.any(String) as string }],
    })
  })
  it.each([
    ['not json', 'json'],
    ['[]', 'shape'],
    ['{"nbformat":3}', 'version'],
    ['{"nbformat":4}', 'shape'],
    ['{"nbformat":4,"cells":[{"cell_type":"heading"}]}', 'shape'],
  ])('refuses %s', (text, reason) => {
    expect(() => parseNotebook(text)).toThrow(new FormatError(reason as FormatError['reason']))
  })
})

describe('what is printed', () => {
  const stream = (text: string, name = 'stdout'): Output => ({ output_type: 'stream', name, text })
  it('goes on where it stopped, and apart from what is printed elsewhere', () => {
    expect(['a', 'b\n'].map((text) => stream(text)).reduce(withOutput, [] as Output[])).toEqual([stream('ab\n')])
    expect([stream('a'), stream('b', 'stderr'), stream('c')].reduce(withOutput, [] as Output[])).toHaveLength(3)
  })
  it('takes lines back as a terminal does', () => {
    expect(overwritten('10%\r20%\r30%')).toBe('30%')
    expect(overwritten('one\ntwo\rthree\n')).toBe('one\nthree\n')
    expect(overwritten('kept\r\n')).toBe('kept\n')
    expect(overwritten('50%\r')).toBe('50%\r')
    expect([stream('50%\r'), stream('60%')].reduce(withOutput, [] as Output[])).toEqual([stream('60%')])
  })
})

it('makes cells that differ', () => {
  expect(newCell('code').id).not.toBe(newCell('code').id)
})
