import { describe, expect, it } from 'vitest'
import type { IdlePolicy, Mount, Preset, Resources, Spec, UsePolicy } from '@/api/types.gen'
import { amountFromBytes, amountToBytes, convertAmount, GIB, MIB, parseAmount } from './amount'
import { applyPreset, automaticShm, type Draft, EMPTY_DRAFT, freeName, fromSpec, presetOf, toSpec } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'
import { HIDDEN } from '../../api/rules.gen'

const presets: Preset[] = [
  { id: 'small', name: 'Small', builtin: true, resources: { cpu: 1, memory: 2 * GIB } },
  { id: 'large', name: 'Large', builtin: true, resources: { cpu: 4, memory: 8 * GIB, shm: GIB } },
]

describe('amounts', () => {
  it('are the same in any unit', () => {
    expect(amountToBytes({ value: 1024, unit: 'm' })).toBe(amountToBytes({ value: 1, unit: 'g' }))
    expect(convertAmount({ value: 1536, unit: 'm' }, 'g')).toEqual({ value: 1.5, unit: 'g' })
    expect(convertAmount({ value: null, unit: 'm' }, 'g')).toEqual({ value: null, unit: 'g' })
  })

  it('are shown in the largest unit that fits', () => {
    expect(amountFromBytes(1.5 * GIB)).toEqual({ value: 1.5, unit: 'g' })
    expect(amountFromBytes(100 * MIB)).toEqual({ value: 100, unit: 'm' })
    expect(amountFromBytes(2 * 1024 * GIB)).toEqual({ value: 2, unit: 't' })
  })

  it('are read only as they are written', () => {
    expect([parseAmount('1.5g'), parseAmount('m'), parseAmount('1'), parseAmount('-1g'), parseAmount('1k')]).toEqual([
      { value: 1.5, unit: 'g' },
      { value: null, unit: 'm' },
      null,
      null,
      null,
    ])
  })
})

describe('automatic shared memory', () => {
  it('is large from 4 GiB of memory on and never as much as the memory', () => {
    expect(automaticShm(4 * GIB)).toBe(GIB)
    expect(automaticShm(4 * GIB - 1)).toBe(64 * MIB)
    expect(automaticShm(64 * MIB)).toBe(32 * MIB)
  })
})

describe('presets', () => {
  it('are recognised by their amounts, whatever the units', () => {
    expect(presetOf({ ...EMPTY_DRAFT, memory: { value: 2048, unit: 'm' } }, presets)?.id).toBe('small')
    expect(presetOf({ ...EMPTY_DRAFT, cpu: 2 }, presets)).toBeNull()
    expect(presetOf({ ...EMPTY_DRAFT, shm: { value: 64, unit: 'm' } }, presets)).toBeNull()
  })

  it('fill in every amount', () => {
    const draft = applyPreset(EMPTY_DRAFT, presets[1]!)
    expect(draft).toMatchObject({ cpu: 4, memory: { value: 8, unit: 'g' }, shm: { value: 1, unit: 'g' } })
    expect(presetOf(draft, presets)?.id).toBe('large')
    expect(applyPreset(draft, presets[0]!).shm).toBeNull()
  })
})

describe('the spec of a draft', () => {
  const draft: Draft = {
    ...EMPTY_DRAFT,
    type: 'batch',
    name: 'train',
    command: 'python train.py',
    startAt: '2030-01-01T10:00:00Z',
    timeout: { value: 2, unit: 'h' },
    image: ' python:3.12 ',
    setup: 'pip install einops',
    env: [{ name: 'A', value: '1' }],
    agent: 'local',
    cpu: 2,
    memory: { value: 2, unit: 'g' },
    shm: { value: 128, unit: 'm' },
    threads: 8,
    mounts: [
      { source: '/data ', target: '', readOnly: true },
      { source: '/x', target: 'y', readOnly: false },
    ],
    ports: ['8080', '9000:9001'],
    noSSH: true,
    admin: true,
  }

  it('says what was entered', () => {
    expect(toSpec(draft)).toEqual({
      type: 'batch',
      name: 'train',
      command: 'python train.py',
      notBefore: '2030-01-01T10:00:00Z',
      timeout: '2h',
      image: 'python:3.12',
      setup: 'pip install einops',
      env: [{ name: 'A', value: '1' }],
      agent: 'local',
      resources: { cpu: 2, memory: 2 * GIB, shm: 128 * MIB },
      threads: 8,
      mounts: [
        { source: '/data', readOnly: true },
        { source: '/x', target: 'y' },
      ],
      ports: [8080, 9000, 9001],
      noSSH: true,
      admin: true,
    })
  })

  it('leaves the batch fields out of an interactive session', () => {
    expect(toSpec({ ...draft, type: 'interactive' })).not.toHaveProperty('command')
    expect(toSpec({ ...draft, type: 'interactive' })).not.toHaveProperty('notBefore')
    expect(toSpec({ ...draft, type: 'interactive' })).not.toHaveProperty('timeout')
  })

  it('comes back as a draft', () => {
    const back = fromSpec(toSpec(draft))
    expect(toSpec(back)).toEqual(toSpec(draft))
  })

  it('loses nothing but the value of a secret', () => {
    const back = fromSpec({
      ...toSpec(draft),
      env: [{ name: 'TOKEN', value: HIDDEN }],
      agent: 'lab',
      group: 'gpus',
      after: ['prepare'],
      timeout: '90s',
    })
    expect(toSpec(back)).toMatchObject({
      notBefore: toSpec(draft).notBefore,
      agent: 'lab',
      group: 'gpus',
      after: ['prepare'],
      timeout: '90s',
    })
    expect(back.env).toEqual([{ name: 'TOKEN', value: '' }])
  })
})

/**
 * A spec with every field of the launcher, which launches no inference sessions; the type refuses one that forgets a
 * field.
 */
type All = Required<Omit<Spec, 'resources' | 'idle' | 'serving'>> & {
  resources: Required<Resources>
  idle: Required<Omit<IdlePolicy, 'use'>> & { use: Required<UsePolicy> }
}
const mounts: [Omit<Required<Mount>, 'folder' | 'path'>, Omit<Required<Mount>, 'source' | 'readOnly'>] = [
  { source: '/data', target: 'in', readOnly: true },
  { folder: 'sets', path: 'a/b', target: 'sets' },
]

describe('a spec with every field', () => {
  const use = { window: '20m', grace: '5m', any: true, cpu: 1, memory: 2, gpu: 3, vram: 4 }
  const all: All = {
    name: 'train-all',
    type: 'batch',
    image: 'lab:1',
    command: 'python train.py',
    notBefore: '2030-01-01T10:00:00Z',
    timeout: '90m',
    setup: 'pip install einops',
    env: [{ name: 'SEED', value: '7' }],
    secrets: ['HF_TOKEN'],
    resources: { cpu: 2, memory: 4 * GIB, shm: 200 * MIB },
    threads: 3,
    mounts,
    ports: [8080, 9000],
    agent: 'lab',
    group: 'gpus',
    accelerator: { shares: 500 },
    uncooperative: true,
    mps: true,
    cluster: 2,
    priority: 70,
    after: ['prepare', 'fetch'],
    pendingTimeout: '2h',
    label: 'thesis',
    noSSH: true,
    admin: true,
    commitOnEnd: 4,
    keepHome: '30d',
    slurm: {
      partition: 'gpu',
      account: 'lab',
      qos: 'long',
      gpuType: 'a100',
      constraint: 'ib&ssd',
      reservation: 'course',
      time: '4h',
      options: ['--exclusive'],
    },
    idle: { lifetime: '2d', network: '1h', use, park: true },
  }
  const throughAddress = (spec: Spec) => toSpec(decodeDraft(encodeDraft(fromSpec(spec))))
  it('comes back whole from the form, and but for values of variables from the address', () => {
    // A batch session is never judged by its traffic, so nothing is asked of it.
    const kept = { ...all, idle: { lifetime: '2d', use } }
    expect(toSpec(fromSpec(all))).toEqual(kept)
    expect(throughAddress(all)).toEqual({ ...kept, env: [{ name: 'SEED', value: '' }] })
    // toEqual takes a field that is undefined for one that is not there.
    const interactive = {
      ...all,
      env: [{ name: 'SEED', value: '' }],
      type: 'interactive' as const,
      command: undefined,
      notBefore: undefined,
      timeout: undefined,
    }
    expect(throughAddress({ ...all, type: 'interactive' })).toEqual(interactive)
  })
  it.each([{ devices: 2 }, { profile: '1g.10gb', count: 1 }, { profile: '1g.10gb', count: 3 }, { memory: 12 * GIB }])(
    'asks for %s of the devices',
    (accelerator) => {
      expect(throughAddress({ ...all, accelerator }).accelerator).toEqual(accelerator)
    },
  )
  it('keeps its longest lists in the address', () => {
    const env = Array.from({ length: 1000 }, (_, i) => ({ name: `V${i}`, value: '' }))
    expect(throughAddress({ ...all, env }).env).toEqual(env)
  })
})

describe('a name from the history', () => {
  it('is kept while it is free, else gets an ending', () => {
    const numbers = [0, 0.5]
    expect(freeName('train', new Set(['other']))).toBe('train')
    expect(freeName('', new Set(['']))).toBe('')
    expect(freeName('train', new Set(['train', 'train-0000']), () => numbers.shift() ?? 0)).toBe('train-i000')
    expect(freeName('x'.repeat(64), new Set(['x'.repeat(64)]), () => 0)).toBe(`${'x'.repeat(59)}-0000`)
  })
})
