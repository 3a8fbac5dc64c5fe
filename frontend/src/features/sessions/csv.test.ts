import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import { toCsv } from './csv'

describe('toCsv', () => {
  it('writes one line a session under a line of names', () => {
    const lines = toCsv([makeSession({ id: 'aaa', name: 'one', exitCode: 3 })]).split('\r\n')
    expect(lines[0]).toMatch(/^id,name,type,status,/)
    expect(lines[1]).toMatch(/^aaa,one,interactive,RUNNING,/)
    expect(lines).toHaveLength(3)
  })
  it('quotes commas, quotes and line ends', () => {
    expect(toCsv([makeSession({ name: 'a,"b"\nc' })])).toContain('"a,""b""\nc"')
  })
  it('disarms what a spreadsheet would run', () => {
    expect(toCsv([makeSession({ name: '=cmd()' })])).toContain(",'=cmd(),")
  })
})
