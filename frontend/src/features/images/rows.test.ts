import { describe, expect, it } from 'vitest'
import type { Image } from '@/api/types.gen'
import { cleanupOf, inTab, nameOf, rowsOf } from './rows'

const image = (id: string, more: Partial<Image> = {}): Image => ({
  id,
  refs: [`${id}:1`],
  size: 1,
  createdAt: `2026-01-0${id.length}T00:00:00Z`,
  arch: 'amd64',
  labels: {},
  agent: 'local',
  usedBy: [],
  ...more,
})
const origin = { name: 'Mine', owner: 'ada', instance: '', session: 's', sessionName: 'work', base: 'python:3.12' }

describe('the images of a machine', () => {
  const plain = image('a')
  const custom = image('bb', { origin })
  const unnamed = image('ccc', { refs: [] })

  it('are shown before the disk is measured, and with their room after', () => {
    expect(rowsOf([plain], undefined)).toEqual([{ image: plain, alone: undefined, containers: 0 }])
    expect(
      rowsOf([plain], {
        agent: 'local',
        total: 9,
        images: [
          { ...plain, alone: 3, containers: 1 },
          { ...unnamed, alone: 4, containers: 0 },
        ],
      }).map((r) => r.alone),
    ).toEqual([3, 4])
  })

  it('stand under the tab of their kind', () => {
    const rows = rowsOf([plain, custom, unnamed], undefined)
    expect(rows.filter((r) => inTab(r, 'all')).map((r) => r.image.id)).toEqual(['a', 'bb'])
    expect(rows.filter((r) => inTab(r, 'custom')).map((r) => nameOf(r.image))).toEqual(['Mine'])
    expect(rows.filter((r) => inTab(r, 'unnamed')).map((r) => r.image.id)).toEqual(['ccc'])
  })

  it('are cleaned up only where nobody uses them, oldest first', () => {
    const row = (one: Image, containers = 0) => ({ image: one, alone: 1, containers })
    const used = image('dddd', { usedBy: [{ session: 's', name: 'work' }] })
    const groups = cleanupOf([
      row(image('eeeee')),
      row(plain),
      row(custom),
      row(unnamed),
      row(used),
      row(image('ffffff'), 1),
    ])
    expect(groups.unused.map((r) => r.image.id)).toEqual(['a', 'eeeee'])
    expect(groups.custom.map((r) => r.image.id)).toEqual(['bb'])
    expect(groups.dangling.map((r) => r.image.id)).toEqual(['ccc'])
  })
})
