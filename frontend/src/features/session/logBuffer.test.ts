import { describe, expect, it } from 'vitest'
import { LogBuffer } from './logBuffer'

const texts = (buffer: LogBuffer) => buffer.lines().map((l) => l.text)

describe('LogBuffer', () => {
  it('joins lines that come in pieces and shows the unfinished one', () => {
    const buffer = new LogBuffer()
    buffer.push('one\ntw')
    expect(texts(buffer)).toEqual(['one', 'tw'])
    buffer.push('o\n')
    expect(texts(buffer)).toEqual(['one', 'two'])
  })
  it('parts the time from the text', () => {
    const buffer = new LogBuffer()
    buffer.push('2026-01-02T03:04:05.123456789Z hello\n')
    expect(buffer.lines()[0]).toEqual({ number: 1, time: '2026-01-02T03:04:05.123456789Z', text: 'hello' })
  })
  it('keeps of a progress bar what stood there last', () => {
    const buffer = new LogBuffer()
    buffer.push(' 10%\r 50%\r100%\r\n')
    expect(texts(buffer)).toEqual(['100%'])
  })
  it('keeps colours and drops other escape sequences', () => {
    const buffer = new LogBuffer()
    buffer.push('\u001b[31mred\u001b[0m\u001b[2K\u001b]0;title\u0007 plain\n')
    expect(texts(buffer)).toEqual(['\u001b[31mred\u001b[0m plain'])
  })
  it('keeps empty lines', () => {
    const buffer = new LogBuffer()
    buffer.push('a\n\nb\n')
    expect(texts(buffer)).toEqual(['a', '', 'b'])
  })
  it('forgets the oldest lines beyond its limit and says how many', () => {
    const buffer = new LogBuffer(10)
    for (let i = 1; i <= 25; i++) buffer.push(`line ${i}\n`)
    const lines = buffer.lines()
    expect(lines.at(-1)?.text).toBe('line 25')
    expect(lines.length).toBeLessThanOrEqual(11)
    expect(buffer.dropped() + lines.length).toBe(25)
    expect(lines[0]?.number).toBe(buffer.dropped() + 1)
  })
})
