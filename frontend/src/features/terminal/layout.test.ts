import { describe, expect, it } from 'vitest'
import { arrange, beside, boxesOf, dividersOf, type Layout, prune, resize, shellsOf, split } from './layout'

const a: Layout = { shell: 'a' }
/** a beside b, which stands above c. */
const three = split(split([a], 'a', 'right', 'b'), 'b', 'down', 'c')[0] as Layout

describe('the panes of a tab', () => {
  it('share its whole place without a gap', () => {
    expect([...boxesOf(three)]).toEqual([
      ['a', { left: 0, top: 0, width: 0.5, height: 1 }],
      ['b', { left: 0.5, top: 0, width: 0.5, height: 0.5 }],
      ['c', { left: 0.5, top: 0.5, width: 0.5, height: 0.5 }],
    ])
  })

  it('give their place to the neighbour when they go', () => {
    expect(prune(three, (shell) => shell !== 'b')).toEqual(split([a], 'a', 'right', 'c')[0])
    expect(prune(three, () => false)).toBeNull()
    expect(prune(three, () => true)).toBe(three)
  })

  it('are divided where the person drags, within limits', () => {
    const [outer, inner] = dividersOf(three)
    expect([outer?.path, inner?.path]).toEqual([[], ['second']])
    expect(boxesOf(resize(three, inner?.path ?? [], 0.8)).get('c')?.height).toBeCloseTo(0.2)
    expect(boxesOf(resize(three, [], 0.001)).get('a')?.width).toBeCloseTo(0.1)
    expect(resize(a, [], 0.7)).toBe(a)
  })

  it('are reached by direction', () => {
    expect(beside(three, 'a', 'right')).toBe('b')
    expect(beside(three, 'b', 'down')).toBe('c')
    expect(beside(three, 'c', 'left')).toBe('a')
    expect(beside(three, 'c', 'up')).toBe('b')
    expect(beside(three, 'a', 'left')).toBeNull()
    expect(beside(three, 'x', 'left')).toBeNull()
  })
})

describe('the tabs', () => {
  it('follow the shells that there are: each stands in one place and none is forgotten', () => {
    const tabs = arrange([three, { shell: 'b' }, { shell: 'gone' }], ['a', 'b', 'c', 'd'])
    expect(tabs.map(shellsOf)).toEqual([['a', 'b', 'c'], ['d']])
    expect(arrange(tabs, ['c']).map(shellsOf)).toEqual([['c']])
    expect(arrange(tabs, [])).toEqual([])
  })

  it('give up a shell that is put beside another', () => {
    expect(split([a, { shell: 'b' }], 'a', 'down', 'b').map(shellsOf)).toEqual([['a', 'b']])
    expect(split([a], 'not there', 'down', 'b').map(shellsOf)).toEqual([['a']])
  })
})
