import { describe, expect, it } from 'vitest'
import type { Terminal } from '@/api/types.gen'
import { mergeTabs, neighbour, tabLabel } from './tabs'

const shell = (id: string, end = 0): Terminal => ({
  id,
  title: '',
  cols: 80,
  rows: 24,
  start: 0,
  end,
  exitCode: null,
  createdAt: '',
})
const none = new Set<string>()

describe('tabs', () => {
  it('follow the list and keep the record they began with', () => {
    const first = mergeTabs([], [shell('a', 10), shell('b')], none)
    const later = mergeTabs(first, [shell('b', 900), shell('a', 500), shell('c')], none)
    expect(later.map((tab) => [tab.terminal.id, tab.terminal.end])).toEqual([
      ['a', 10],
      ['b', 0],
      ['c', 0],
    ])
  })

  it('stay the same object when nothing has changed, so that nothing is drawn again', () => {
    const tabs = mergeTabs([], [shell('a')], none)
    expect(mergeTabs(tabs, [shell('a', 99)], none)).toBe(tabs)
  })

  it('outlive their shell until they are closed', () => {
    const tabs = mergeTabs([], [shell('a'), shell('b')], none)
    expect(mergeTabs(tabs, [shell('b')], none).map((tab) => [tab.terminal.id, tab.listed])).toEqual([
      ['a', false],
      ['b', true],
    ])
    expect(mergeTabs(tabs, [shell('b')], new Set(['a'])).map((tab) => tab.terminal.id)).toEqual(['b'])
  })

  it('do not come back while a closing shell is still listed', () => {
    expect(mergeTabs([], [shell('a'), shell('b')], new Set(['a'])).map((tab) => tab.terminal.id)).toEqual(['b'])
  })

  it('hand over to the next one, else to the one before', () => {
    const tabs = mergeTabs([], [shell('a'), shell('b'), shell('c')], none)
    expect([neighbour(tabs, 'a'), neighbour(tabs, 'c'), neighbour(tabs.slice(0, 1), 'a')]).toEqual(['b', 'b', null])
  })

  it('are called by what the program says, the shell, or their number', () => {
    expect(tabLabel({ ...shell('a'), title: 'bash' }, ' vim ', 0)).toBe('vim')
    expect(tabLabel({ ...shell('a'), title: 'bash' }, undefined, 0)).toBe('bash')
    expect(tabLabel(shell('a'), undefined, 2)).toBe('3')
  })
})
