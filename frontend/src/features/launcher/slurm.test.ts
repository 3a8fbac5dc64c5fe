import { describe, expect, it } from 'vitest'
import type { Machine, SlurmSite } from '../../api/types.gen'
import { EMPTY_DRAFT, toSpec } from './draft'
import { accountChoices, askedOf, devicesOf, partitionChoices, partitionOf, qosChoices, siteOf } from './slurm'
import { validate } from './validate'

const site: SlurmSite = {
  version: '24.05.3',
  calls: 60,
  partitions: [
    { name: 'cpu', up: true, default: true, nodes: 10, cpus: 64, memory: 256 * 2 ** 30 },
    {
      name: 'gpu',
      up: true,
      nodes: 2,
      cpus: 32,
      memory: 512 * 2 ** 30,
      gpus: [
        { type: 'a100', count: 4 },
        { type: 'h200', count: 2, shards: 16 },
      ],
      accounts: ['bio'],
      qos: ['high'],
    },
    { name: 'old', up: false, nodes: 1, cpus: 8, memory: 2 ** 35 },
  ],
  accounts: [
    { name: 'bio', qos: ['normal', 'high'] },
    { name: 'chem', partition: 'cpu', qos: ['normal'] },
  ],
  qos: [{ name: 'normal' }, { name: 'high' }],
}
const machine = { agent: 'cluster', online: true, slurm: site } as Machine
const lab = { agent: 'lab', online: true } as Machine

describe('a site of Slurm', () => {
  it('is that of the machine, or of the only one', () => {
    expect(siteOf({ agent: 'cluster' }, [machine, lab])).toBe(site)
    expect(siteOf({ agent: '' }, [machine])).toBe(site)
    expect(siteOf({ agent: '' }, [machine, lab])).toBeUndefined()
    expect(siteOf({ agent: 'lab' }, [machine, lab])).toBeUndefined()
  })

  it('has a default partition', () => {
    expect(partitionOf(site, null)?.name).toBe('cpu')
    expect(partitionOf(site, { partition: 'gpu' })?.name).toBe('gpu')
    expect(partitionOf(site, { partition: 'cpu,gpu' })).toBeUndefined()
  })

  it('says of each choice why it cannot be', () => {
    expect(partitionChoices(site, { account: 'chem', qos: 'normal' })).toEqual([
      { name: 'cpu' },
      { name: 'gpu', why: { key: 'notAccount', name: 'chem' } },
      { name: 'old', why: { key: 'down', name: 'old' } },
    ])
    expect(accountChoices(site, { partition: 'gpu' })).toEqual([
      { name: 'bio' },
      { name: 'chem', why: { key: 'notHere', name: 'gpu' } },
    ])
    expect(qosChoices(site, { partition: 'gpu' })).toEqual([
      { name: 'normal', why: { key: 'notHere', name: 'gpu' } },
      { name: 'high' },
    ])
    expect(qosChoices(site, { account: 'chem' })[1]).toEqual({
      name: 'high',
      why: { key: 'notAccount', name: 'chem' },
    })
  })

  it('has GPUs by partition and type', () => {
    const gpu = partitionOf(site, { partition: 'gpu' })
    expect(devicesOf(gpu, undefined)).toEqual({ types: ['a100', 'h200'], count: 4, parts: 8 })
    expect(devicesOf(gpu, 'a100')).toEqual({ types: ['a100', 'h200'], count: 4, parts: 0 })
    expect(devicesOf(partitionOf(site, null), undefined)).toEqual({ types: [], count: 0, parts: 0 })
  })
})

describe('what is asked of Slurm', () => {
  it('is what was entered', () => {
    expect(askedOf({ partition: '', account: 'bio', time: 'h', options: ['', ' --contiguous '] })).toEqual({
      account: 'bio',
      options: ['--contiguous'],
    })
    expect(toSpec({ ...EMPTY_DRAFT, slurm: { partition: '', time: '', options: [] } }).slurm).toBeUndefined()
    expect(toSpec({ ...EMPTY_DRAFT, slurm: { time: '4h' } }).slurm).toEqual({ time: '4h' })
  })

  it('needs a number for a time limit', () => {
    const faults = (time: string) =>
      validate({ ...EMPTY_DRAFT, image: 'a:1', slurm: { time } }, 0).map((issue) => issue.field)
    expect(faults('h')).toEqual(['slurm.time'])
    expect(faults('4h')).toEqual([])
    expect(faults('')).toEqual([])
  })
})
