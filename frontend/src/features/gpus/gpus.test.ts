import { describe, expect, it } from 'vitest'
import { makeBoard, makeDevice } from '@/api/testing/session'
import type { DeviceHolder } from '@/api/types.gen'
import { memoryParts, sessionNumbers, sortHolders } from './holders'
import { joinPoints } from './points'

const GIB = 1024 ** 3
const session = (change: Partial<DeviceHolder> = {}): DeviceHolder => ({
  session: 's',
  name: 'train',
  owner: 'me',
  share: 500,
  promised: 40 * GIB,
  memory: 10 * GIB,
  ...change,
})
const process: DeviceHolder = { name: 'python', owner: 'ann', pid: 4312, share: 0, promised: 0, memory: 11 * GIB }

describe('memoryParts', () => {
  it('tells what a session holds from what it may still take, and foreign processes by themselves', () => {
    const device = makeDevice({ reserved: GIB, memoryUsed: 21 * GIB, holders: [session(), process] })
    expect(memoryParts(device).map((p) => [p.kind, p.bytes / GIB])).toEqual([
      ['session', 10],
      ['unclaimed', 30],
      ['foreign', 11],
      ['reserved', 1],
    ])
  })
  it('shows what nobody known uses, and no rounding', () => {
    const used = (memoryUsed: number) =>
      memoryParts(makeDevice({ reserved: 0, memoryUsed, holders: [process] })).map((p) => [p.kind, p.bytes / GIB])
    expect(used(13 * GIB)).toEqual([
      ['foreign', 11],
      ['other', 2],
    ])
    expect(used(11.1 * GIB)).toEqual([['foreign', 11]])
  })
  it('counts what another Slipway promised as its own, and not as used by nobody known', () => {
    const neighbour: DeviceHolder = {
      name: 'tune (of eve, another Slipway)',
      owner: 'eve',
      share: 200,
      promised: 16 * GIB,
    }
    expect(
      memoryParts(makeDevice({ reserved: 0, memoryUsed: 18 * GIB, holders: [session(), neighbour] })).map((p) => [
        p.kind,
        p.bytes / GIB,
      ]),
    ).toEqual([
      ['session', 10],
      ['unclaimed', 30],
      ['neighbour', 16],
    ])
  })
  it('stands by the promise where a use is not told', () => {
    const holder = session()
    Reflect.deleteProperty(holder, 'memory')
    expect(memoryParts(makeDevice({ reserved: 0, holders: [holder] })).map((p) => p.kind)).toEqual(['unclaimed'])
  })
})

describe('holders', () => {
  it('are coloured alike on every device', () => {
    const boards = [
      makeBoard([
        makeDevice({ holders: [session({ session: 'b' })] }),
        makeDevice({ holders: [process, session({ session: 'a' }), session({ session: 'b' })] }),
      ]),
    ]
    expect([...sessionNumbers(boards)]).toEqual([
      ['b', 0],
      ['a', 1],
    ])
  })
  it('stand with sessions first, the largest before', () => {
    expect(
      sortHolders([process, session({ name: 'small', share: 100 }), session({ name: 'large', share: 900 })]).map(
        (h) => h.name,
      ),
    ).toEqual(['large', 'small', 'python'])
  })
})

describe('joinPoints', () => {
  const point = (second: number, util?: number) => ({
    at: new Date(second * 1000).toISOString(),
    ...(util === undefined ? {} : { util }),
  })
  it('puts samples of one round on one place of the axis', () => {
    const joined = joinPoints(
      [
        [point(10, 1), point(12, 2)],
        [point(10.2, 5), point(12.3)],
      ],
      0,
    )
    expect(joined.times).toEqual([10, 12])
    expect(joined.util).toEqual([
      [1, 2],
      [5, null],
    ])
  })
  it('breaks the lines where nothing was measured', () => {
    const joined = joinPoints([[point(10, 1), point(400, 2)]], 0)
    expect(joined.util).toEqual([[1, null, 2]])
  })
  it('leaves out what lies before the range', () => {
    expect(joinPoints([[point(10, 1), point(20, 2)]], 15).times).toEqual([20])
  })
})
