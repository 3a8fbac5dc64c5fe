import { describe, expect, it } from 'vitest'
import { cleanFamily } from './terminalChoices'

describe('the name of a font', () => {
  it('holds nothing that would end it in a list of fonts', () => {
    expect(cleanFamily("Fira Code'; } body {")).toBe('Fira Code  body')
    expect(cleanFamily('  나눔고딕코딩 ')).toBe('나눔고딕코딩')
    expect(cleanFamily('x'.repeat(80))).toHaveLength(64)
  })
})
