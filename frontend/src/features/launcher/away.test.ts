import { describe, expect, it } from 'vitest'
import type { Folder } from '@/api/types.gen'
import { awayOf, copyName, movedTo, placeOf } from './away'
import { EMPTY_DRAFT, fromSpec, type MountRow, toSpec } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'

const folder = (name: string, agent: string, state: Folder['state'] = 'ready'): Folder => ({
  id: `${agent}-${name}`,
  name,
  agent,
  owner: 'ada',
  permission: 'rw',
  mode: 'general',
  auto: false,
  state,
  createdAt: '2026-01-01T00:00:00Z',
  usedBy: [],
})
const row = (name: string, agent?: string): MountRow => ({
  source: '',
  folder: name,
  path: '',
  ...(agent ? { agent } : {}),
  target: '',
  readOnly: false,
})

describe('a mount of a folder', () => {
  const folders = [folder('data', 'lab'), folder('data', 'desk'), folder('set', 'lab'), folder('set.part', 'desk')]

  it('is away where the session runs on another machine', () => {
    expect(awayOf(row('data', 'lab'), folders, 'desk')).toEqual({
      folder: folders[0],
      to: 'desk',
      twin: folders[1],
      begun: false,
    })
    expect(awayOf(row('set', 'lab'), folders, 'desk')).toMatchObject({ twin: undefined, begun: true })
    expect(awayOf(row('data', 'lab'), folders, 'lab')).toBeNull()
    expect(awayOf(row('data', 'lab'), folders, '')).toBeNull()
    expect(awayOf(row('data'), folders, 'desk')).toBeNull()
    // What is on neither machine is reported by the machine itself.
    expect(awayOf(row('gone', 'lab'), folders, 'desk')).toBeNull()
    expect(awayOf(row('old', 'lab'), [folder('old', 'lab', 'trashed')], 'desk')).toBeNull()
  })

  it('decides the machine of a launch on Automatic', () => {
    const draft = { ...EMPTY_DRAFT, mounts: [row('set', 'lab')] }
    expect(placeOf(draft)).toBe('lab')
    expect(toSpec(draft).agent).toBe('lab')
    expect(toSpec({ ...draft, mounts: [] }).agent).toBeUndefined()
    expect(placeOf({ ...draft, agent: 'desk' })).toBe('desk')
  })

  it('keeps its machine in the address', () => {
    const draft = { ...EMPTY_DRAFT, agent: 'desk', mounts: [row('set', 'lab')] }
    expect(decodeDraft(encodeDraft(draft))).toEqual(draft)
  })

  it('stays the folder of a recipe when another machine is chosen', () => {
    const recipe = { ...EMPTY_DRAFT, agent: 'lab', mounts: [row('set'), row('gone'), row('data', 'desk')] }
    const moved = movedTo(fromSpec(toSpec(recipe)), { agent: 'desk', group: '' }, folders)
    expect(moved.agent).toBe('desk')
    expect(moved.mounts).toEqual([row('set', 'lab'), row('gone'), row('data', 'lab')])
    expect(movedTo(recipe, { agent: '', group: '' }, folders).mounts[2]).toEqual(row('data', 'desk'))
  })

  it('is copied under a free name', () => {
    expect([copyName('a', []), copyName('a', ['a']), copyName('a', ['a', 'a-2'])]).toEqual(['a', 'a-2', 'a-3'])
  })
})
