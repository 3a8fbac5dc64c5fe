import { describe, expect, it } from 'vitest'
import { parseDotenv, putVariables } from './dotenv'

const pairs = (text: string) => parseDotenv(text)?.map(({ name, value }) => [name, value])

describe('pasted variables', () => {
  it.each<[string, string[][]]>([
    ['HF_TOKEN=hf_x', [['HF_TOKEN', 'hf_x']]],
    ['export A=1', [['A', '1']]],
    ['A = 1 ', [['A', '1']]],
    ['A=', [['A', '']]],
    ['A=a=b#c # a comment', [['A', 'a=b#c']]],
    ["A='one # two'  # three", [['A', 'one # two']]],
    ['A="x\\"y\\n$z"', [['A', 'x"y\n$z']]],
    ['A="it is open', [['A', '"it is open']]],
    ['MY-VAR=1', [['MY-VAR', '1']]],
  ])('%s', (text, expected) => expect(pairs(text)).toEqual(expected))

  it('are a whole .env file', () => {
    const text = [
      '# model',
      'HF_TOKEN=hf_x',
      '',
      'export EPOCHS="3"',
      "  KEY='-----BEGIN KEY-----",
      'abc=',
      "-----END KEY-----'",
      'a line that is no variable',
      'EPOCHS=4',
    ].join('\r\n')
    expect(pairs(text)).toEqual([
      ['HF_TOKEN', 'hf_x'],
      ['KEY', '-----BEGIN KEY-----\nabc=\n-----END KEY-----'],
      ['EPOCHS', '4'],
    ])
  })

  it.each(['HF_TOKEN', '', '# A=1', 'several words\nand lines', '=x'])('are not in %j', (text) =>
    expect(parseDotenv(text)).toBeNull(),
  )

  it('take the place of the row, or change the row of their name', () => {
    const env = [
      { name: 'A', value: '1' },
      { name: '', value: '' },
      { name: 'C', value: '3' },
    ]
    const put = putVariables(env, 1, [
      { name: 'B', value: '2' },
      { name: 'A', value: '9' },
      { name: 'D', value: '4' },
    ])
    expect(put.map(({ name, value }) => name + value)).toEqual(['A9', 'B2', 'D4', 'C3'])
  })
})
