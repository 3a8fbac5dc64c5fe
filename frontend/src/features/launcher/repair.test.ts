import { describe, expect, it } from 'vitest'
import { type Draft, EMPTY_DRAFT, fromSpec, toSpec } from './draft'
import type { Issue } from './issues'
import { type Lack, lacksOf, repairAfter, repairMount, setting } from './repair'
import { nearOffers } from './RepairDevices'
import { NO_ACCELERATOR, acceleratorText, offerOf, parseAccelerator } from './accelerator'

const draft: Draft = fromSpec({
  image: 'gone:1',
  resources: { cpu: 2, memory: 1 << 30 },
  agent: 'lab-2',
  group: 'lab',
  accelerator: { profile: '9g.99gb', count: 1 },
  mounts: [{ folder: 'sets' }, { source: '/data', target: '/data' }, { folder: 'models', path: 'a', readOnly: true }],
  after: ['prepare', 'fetch'],
})
const issue = (field: string, more: Partial<Issue> = {}): Issue => ({ field, severity: 'error', ...more })
const lack = (kind: Lack['kind'], index = 0): Lack => ({ field: '', kind, index, asked: 'x', issue: issue('') })

describe('what is not there', () => {
  it('is found field by field, what depends on the machine after the machine', () => {
    const issues = [
      issue('mounts[0].folder', { key: 'folderGone' }),
      issue('mounts[2].path', { message: 'No such directory.' }),
      issue('after[1]', { key: 'afterGone' }),
      issue('accelerator', { key: 'migNone' }),
      issue('agent', { key: 'machineGone' }),
      issue('group', { key: 'groupGone' }),
      issue('resources.cpu', { key: 'cpuMax' }),
    ]
    expect(lacksOf(draft, issues, 'away', '1 × 9g.99gb').map(({ kind, asked }) => [kind, asked])).toEqual([
      ['group', 'lab'],
      ['agent', 'lab-2'],
      ['image', 'gone:1'],
      ['accelerator', '1 × 9g.99gb'],
      ['mount', 'sets'],
      ['part', 'models/a'],
      ['after', 'fetch'],
    ])
  })

  it('is not what somebody has yet to enter, nor what is written wrongly, nor a warning', () => {
    const issues = [
      issue('accelerator', { key: 'gpuShare', missing: true }),
      issue('mounts[0].path', { key: 'pathOutside' }),
      issue('accelerator', { severity: 'warning', key: 'gpuWaits' }),
    ]
    expect(lacksOf(draft, issues, 'none', '')).toEqual([])
    expect(lacksOf(EMPTY_DRAFT, [issue('accelerator', { key: 'gpuNone' })], 'none', '')).toEqual([])
  })
})

describe('a repair', () => {
  it('puts something else where the session looks for it, and leaves everything else', () => {
    const repair = repairMount(lack('mount'), draft, { folder: 'other' })
    const after = repair.apply(draft)
    expect(toSpec(after)).toEqual({
      ...toSpec(draft),
      mounts: [{ folder: 'other', target: '/home/work/sets' }, ...(toSpec(draft).mounts ?? []).slice(1)],
    })
    expect(repair.revert(after)).toEqual(draft)
  })

  it('leaves out what it was told to, and is taken back whatever else was changed', () => {
    const mount = repairMount(lack('mount', 2), draft, null)
    const session = repairAfter(lack('after', 0), draft, null)
    const after = session.apply(mount.apply({ ...draft, name: 'other' }))
    expect([after.mounts.length, after.after]).toEqual([2, ['fetch']])
    expect(session.revert(mount.revert(after))).toEqual({ ...draft, name: 'other' })
    const swapped = repairAfter(lack('after', 1), draft, { id: 'abc', name: 'again' })
    expect([swapped.apply(draft).after, swapped.revert(swapped.apply(draft)).after]).toEqual([
      ['prepare', 'abc'],
      draft.after,
    ])
  })

  it('sets fields and takes them back as they were', () => {
    const repair = setting(lack('agent'), draft, 'Automatic', { agent: '' })
    expect(toSpec(repair.apply(draft)).agent).toBeUndefined()
    expect(repair.revert(repair.apply(draft))).toEqual(draft)
  })
})

describe('other devices', () => {
  it('are none where there are none', () =>
    expect(nearOffers(parseAccelerator('2'), offerOf([], ''), undefined)).toEqual([]))

  it('begin with what would be given, and are never what was asked', () => {
    const device = {
      uuid: 'u',
      instances: [],
      free: 1000,
      memory: 24 * 1024 ** 3,
      reserved: 0,
      memoryFree: 1,
      capabilities: [],
    }
    const offer = offerOf([{ agent: 'a', online: true, quantum: 100, devices: [device, device] } as never], 'a')
    const texts = (asked: string, rounded?: string) =>
      nearOffers(parseAccelerator(asked), offer, rounded).map(acceleratorText)
    expect(texts('4')).toEqual(['1', '2', '0.5'])
    expect(texts('0.55', '0.6')).toEqual(['0.6', '1', '2', '0.5'])
    expect(texts('vram:80g')).toEqual(['vram:24g', '1', '0.5'])
    expect(texts('mig:1g.10gb')).toEqual(['1', '0.5'])
    expect(
      nearOffers({ ...NO_ACCELERATOR, mode: 'devices', devices: 1 }, offer, undefined).map(acceleratorText),
    ).not.toContain('1')
  })
})
