import { describe, expect, it } from 'vitest'
import { grouped, joinWords, splitWords } from './words'

describe('a command line', () => {
  it.each([
    ['vllm serve  Qwen/Qwen2.5', ['vllm', 'serve', 'Qwen/Qwen2.5']],
    [`server --name 'a b' --empty ''`, ['server', '--name', 'a b', '--empty', '']],
    ['server "a \\"b\\" \\n" c\\ d', ['server', 'a "b" \\n', 'c d']],
    ['server \\\n  --port 8000\n', ['server', '--port', '8000']],
    [`--json='{"a": 1}'`, ['--json={"a": 1}']],
    ['echo $HOME | cat', ['echo', '$HOME', '|', 'cat']],
    ['  ', []],
  ])('is split as a shell does, but nothing is expanded: %s', (text, words) => {
    expect(splitWords(text)).toEqual(words)
  })

  it.each([`a 'b`, 'a "b'])('with an open quote is none: %s', (text) => {
    expect(splitWords(text)).toBeUndefined()
  })

  it.each([[['a', 'b c', '', "it's", '"q"', '\\', '$HOME', 'a\nb']]])('comes back as it was', (words) => {
    expect(splitWords(joinWords(words))).toEqual(words)
  })
})

describe('the lines of a preview', () => {
  it('have the program with what comes before its flags, and each flag with its value', () => {
    expect(grouped(['vllm', 'serve', 'M', '--port', '8000', '--metrics', '-x', 'a', 'b'])).toEqual([
      ['vllm', 'serve', 'M'],
      ['--port', '8000'],
      ['--metrics'],
      ['-x', 'a'],
      ['b'],
    ])
    expect(grouped([])).toEqual([])
  })
})
