import { describe, expect, it } from 'vitest'
import { makeBoard, makeDevice } from '@/api/testing/session'
import {
  acceleratorText,
  decodeAccelerator,
  encodeAccelerator,
  NO_ACCELERATOR,
  offerOf,
  parseAccelerator,
} from './accelerator'
import { GIB } from './amount'
import { EMPTY_DRAFT, fromSpec, toSpec } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'
import { START_IDLE, START_USE } from './queueDraft'
import { validate } from './validate'
import { advise } from './waits'

describe('a request for devices', () => {
  it.each(['0.5', '1.0', '2', 'mig:1g.10gb', 'mig:1g.10gb:3', 'vram:512m', 'vram:12g'])(
    '%s comes back as it was written',
    (text) => {
      expect(acceleratorText(parseAccelerator(text))).toBe(text)
    },
  )
  it('tells a share of one device from one whole device', () => {
    expect([parseAccelerator('1').mode, parseAccelerator('1.0').mode]).toEqual(['devices', 'shares'])
    expect(acceleratorText({ ...NO_ACCELERATOR, mode: 'shares', shares: 0.1 + 0.2 })).toBe('0.3')
  })
  it('is none when it is anything else', () => {
    expect([undefined, '', 'none', '0', '-1', 'mig:', 'vram:lots'].map((text) => parseAccelerator(text).mode)).toEqual(
      Array(7).fill('none'),
    )
  })
  it('is kept by the address also while it is not complete', () => {
    for (const a of [
      { ...NO_ACCELERATOR, mode: 'shares' as const, shares: null },
      { ...NO_ACCELERATOR, mode: 'mig' as const, profile: '1g.10gb', instances: null },
    ]) {
      expect(decodeAccelerator(encodeAccelerator(a))).toEqual(a)
    }
  })
})

describe('what machines offer', () => {
  const mig = makeDevice({
    uuid: 'GPU-2',
    instances: [
      { uuid: 'm1', profile: '1g.10gb', memory: 10 * GIB, slices: 125 },
      { uuid: 'm2', profile: '1g.10gb', memory: 10 * GIB, slices: 125 },
    ],
  })
  const boards = [
    makeBoard([makeDevice({ free: 300, memoryFree: 20 * GIB }), makeDevice({ uuid: 'GPU-1' }), mig]),
    makeBoard([makeDevice()], { agent: 'gone', online: false }),
    makeBoard([], { agent: 'plain' }),
  ]
  it('is what is free on one device, over all, and whole; a device in instances offers only those', () => {
    expect(offerOf(boards, '')).toMatchObject({
      quantum: 0.1,
      freeOnOne: 1,
      most: 3,
      freeShares: 1.3,
      freeWhole: 1,
      memory: 79 * GIB,
      profiles: [{ profile: '1g.10gb', count: 2 }],
    })
  })
  it('is never more than one machine has, which a session cannot leave', () => {
    const two = [makeBoard([makeDevice()]), makeBoard([makeDevice(), makeDevice(), makeDevice()], { agent: 'lab' })]
    expect(offerOf(two, '')).toMatchObject({ most: 3, freeShares: 3, freeWhole: 3 })
  })
  it('is nothing of a machine that is not reached or has no device', () => {
    expect(offerOf(boards, 'gone').devices).toEqual([])
    expect(offerOf(boards, 'plain').devices).toEqual([])
  })
  const keys = (text: string, agent = '') =>
    advise({ ...EMPTY_DRAFT, agent, accelerator: parseAccelerator(text) }, { machines: [], boards }).map((i) => i.key)
  it.each([
    ['0.5', []],
    ['1.2', []],
    ['1.5', ['gpuWaits']],
    ['2', ['gpuWholeWaits']],
    ['mig:1g.10gb:3', []],
    ['vram:40g', []],
    ['vram:80g', ['vramWaits']],
  ])('makes a session with %s wait for %j', (text, wanted) => {
    expect(keys(text)).toEqual(wanted)
  })
  it('makes none wait where there is no device, or none is known yet', () => {
    expect(keys('0.5', 'plain')).toEqual([])
  })
})

describe('how a session waits', () => {
  const faults = (change: Partial<typeof EMPTY_DRAFT>) =>
    validate({ ...EMPTY_DRAFT, image: 'a:1', ...change }, 0).map((i) => `${i.field} ${i.key}`)
  it('is right as it begins', () => {
    expect(faults({})).toEqual([])
    expect(faults({ idle: { ...START_IDLE, use: START_USE } })).toEqual([])
  })
  it('has bounds', () => {
    expect(faults({ priority: 101, cluster: 9, count: 0, commitOnEnd: { keep: 51 } })).toEqual([
      'priority priority',
      'cluster cluster',
      'count count',
      'commitOnEnd commitOnEnd',
    ])
    expect(faults({ priority: null, cluster: 1.5 })).toEqual(['priority priority', 'cluster cluster'])
  })
  it('has whole lengths of time', () => {
    const window = { value: null, unit: 'm' } as const
    expect(
      faults({
        pendingTimeout: { value: 0, unit: 's' },
        idle: { lifetime: { value: 1.5, unit: 'h' }, network: null, use: { ...START_USE, window }, park: false },
      }),
    ).toEqual(['pendingTimeout timeoutNumber', 'idle.lifetime timeoutNumber', 'idle.use.window timeoutNumber'])
  })
  it('asks for devices in numbers', () => {
    const mode = (change: Partial<typeof NO_ACCELERATOR>) => faults({ accelerator: { ...NO_ACCELERATOR, ...change } })
    expect(mode({ mode: 'shares', shares: 0 })).toEqual(['accelerator gpuShare'])
    expect(mode({ mode: 'devices', devices: 1.5 })).toEqual(['accelerator gpuPart'])
    expect(mode({ mode: 'mig' })).toEqual(['accelerator migRequired'])
    expect(mode({ mode: 'memory', memory: { value: null, unit: 'g' } })).toEqual(['accelerator vramRequired'])
  })
})

describe('the draft with all of this', () => {
  const draft = {
    ...EMPTY_DRAFT,
    image: 'a:1',
    accelerator: parseAccelerator('0.5'),
    uncooperative: true,
    priority: 50,
    after: ['abc'],
    pendingTimeout: { value: 2, unit: 'h' as const },
    label: 'thesis',
    cluster: 3,
    count: 4,
    commitOnEnd: { keep: 5 },
    idle: { lifetime: { value: 1, unit: 'd' as const }, network: null, use: { ...START_USE, any: true }, park: false },
  }
  it('becomes a spec; how many there are is asked beside it', () => {
    expect(toSpec(draft)).toMatchObject({
      accelerator: { shares: 500 },
      uncooperative: true,
      priority: 50,
      after: ['abc'],
      pendingTimeout: '2h',
      label: 'thesis',
      cluster: 3,
      commitOnEnd: 5,
      idle: { lifetime: '1d', use: { window: '30m', grace: '10m', any: true, cpu: 5, gpu: 5 } },
    })
    expect(toSpec(draft)).not.toHaveProperty('count')
  })
  it('asks for nothing that is as usual', () => {
    expect(Object.keys(toSpec({ ...EMPTY_DRAFT, image: 'a:1' })).toSorted()).toEqual(['image', 'resources', 'type'])
  })
  it('survives the address', () => {
    expect(decodeDraft(encodeDraft(draft))).toEqual(draft)
  })
  it('comes back from a spec, but for how many there were', () => {
    expect(fromSpec(toSpec(draft))).toMatchObject({ ...draft, count: 1 })
  })
  it('forgets what an address cannot mean', () => {
    expect(decodeDraft('{"priority":"high","idle":7,"after":[1,"x"],"accelerator":"magic 3"}')).toMatchObject({
      priority: null,
      idle: null,
      after: ['x'],
      accelerator: NO_ACCELERATOR,
    })
  })
})
