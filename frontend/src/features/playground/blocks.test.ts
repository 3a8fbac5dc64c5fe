import { describe, expect, it } from 'vitest'
import { blocksOf } from './blocks'

const words = (text: string) => ({ code: false, text })
const code = (text: string) => ({ code: true, text })

describe('an answer', () => {
  it.each<[string, string, ReturnType<typeof blocksOf>]>([
    ['nothing', '', []],
    ['one line', 'Hello', [words('Hello')]],
    ['paragraphs', 'a\nb\n\n\nc', [words('a\nb'), words('c')]],
    ['code with its words', 'Run:\n```sh\nls\n\npwd\n```\nDone.', [words('Run:'), code('ls\n\npwd'), words('Done.')]],
    ['code that is still written', 'Run:\n```sh\nls', [words('Run:'), code('ls')]],
    ['code that just began', '```', [code('')]],
    ['a shorter fence inside a longer one', '````\n```\n````', [code('```')]],
    ['other marks', '~~~\n```\n~~~\nx', [code('```'), words('x')]],
    ['marks inside a line', 'use ```x``` here', [words('use ```x``` here')]],
    ['HTML as it is', '<b>x</b>', [words('<b>x</b>')]],
  ])('has %s', (_name, text, blocks) => expect(blocksOf(text)).toEqual(blocks))
})
