import { describe, expect, it } from 'vitest'
import { makeAgent } from '@/api/testing/session'
import { addressFault, byGroup, groupsOf, joinRows } from './join'

describe('the rows of agents', () => {
  const agents = [
    makeAgent(),
    makeAgent({ name: 'lab', local: false, group: 'gpus' }),
    makeAgent({ name: 'attic', local: false, group: 'default' }),
  ]
  it('stand by resource group, the default one first', () => {
    const groups = byGroup(joinRows(agents, [], [], []))
    expect(groups.map(([group, rows]) => [group, ...rows.map((r) => r.agent.name)])).toEqual([
      ['default', 'local', 'attic'],
      ['gpus', 'lab'],
    ])
    expect(groupsOf(agents)).toEqual(['default', 'gpus'])
  })
})

describe('an address', () => {
  it.each([
    ['', 'required'],
    ['my host', 'spaces'],
    ['ftp://lab', 'scheme'],
    ['http://lab', 'scheme'],
    ['lab', null],
    ['ada@lab', null],
    ['ssh://ada@lab:2222', null],
    ['slurm://ada@login:2222', null],
    ['slipway://lab:7442', null],
    ['wss://lab/slipway', null],
  ])('%s: %s', (text, fault) => expect(addressFault(text)).toBe(fault))
})
