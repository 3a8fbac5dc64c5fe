import { describe, expect, it } from 'vitest'
import type { Machine } from '@/api/types.gen'
import { GIB } from './amount'
import { type Draft, EMPTY_DRAFT } from './draft'
import { type Issue, issueAt, mergeIssues, stepOf, stepsInError } from './issues'
import { validate } from './validate'
import { mountTarget } from './validateMounts'

const now = Date.parse('2026-01-01T12:00:00Z')
const machine: Machine = {
  agent: 'local',
  online: true,
  lastHeard: '',
  engine: 'docker',
  version: '',
  hostname: 'box',
  os: 'linux',
  arch: 'amd64',
  cpus: 8,
  memory: 16 * GIB,
  usedCpus: 6,
  usedMemory: 12 * GIB,
  loadCpu: 0,
  loadMemory: 0,
  diskFree: 0,
  diskTotal: 0,
  warnings: [],
}
const good: Draft = { ...EMPTY_DRAFT, image: 'python:3.12' }
const judge = (change: Partial<Draft>, machines = [machine]): Issue[] =>
  validate({ ...good, ...change }, { now, liveNames: new Set(['taken-name']), machines })
const told = (issues: Issue[]) => issues.map((i) => `${i.severity} ${i.field} ${i.key}`)

describe('a draft', () => {
  it('with nothing but an image is right', () => {
    expect(judge({})).toEqual([])
  })

  it.each([
    ['abc', 'nameShort'],
    ['x'.repeat(65), 'nameLong'],
    ['-abcd', 'nameStart'],
    ['.abcd', 'nameStart'],
    ['abcd-', 'nameEnd'],
    ['ab cd', 'nameCharacters'],
    ['ab/cd', 'nameCharacters'],
    ['naïve', 'nameCharacters'],
    ['세션이름1', 'nameStart'],
    ['taken-name', 'nameTaken'],
  ])('may not be named %s: %s', (name, key) => {
    expect(told(judge({ name }))).toEqual([`error name ${key}`])
  })

  it.each(['abcd', 'x'.repeat(64), 'train-1.a_b'])('may be named %s', (name) => {
    expect(judge({ name })).toEqual([])
  })

  it('of a batch needs a command, a start in the future and a whole timeout', () => {
    expect(told(judge({ type: 'batch', startAt: '2026-01-01T12:00:00Z', timeout: { value: 0, unit: 's' } }))).toEqual([
      'error command commandRequired',
      'error notBefore startPast',
      'error timeout timeoutNumber',
    ])
    expect(told(judge({ type: 'batch', command: ' \n', startAt: '', timeout: { value: 1.5, unit: 'm' } }))).toEqual([
      'error command commandRequired',
      'error notBefore startRequired',
      'error timeout timeoutNumber',
    ])
    expect(
      judge({ type: 'batch', command: 'true', startAt: '2026-01-01T12:00:01Z', timeout: { value: 1, unit: 'w' } }),
    ).toEqual([])
  })

  it('of a cluster says how many of its containers fit now, whatever else waits', () => {
    const cluster = (size: number, change: Partial<Draft> = {}) =>
      judge({ cpu: 1, memory: { value: 1, unit: 'g' }, cluster: size, ...change }).map((i) => [
        i.severity,
        i.field,
        i.key,
        i.values,
      ])
    expect(cluster(2)).toEqual([])
    expect(cluster(3)).toEqual([['warning', 'cluster', 'clusterWaits', { count: 2, total: 3 }]])
    expect(cluster(2, { memory: { value: 2560, unit: 'm' } })).toEqual([
      ['warning', 'cluster', 'clusterWaits', { count: 1, total: 2 }],
    ])
    expect(cluster(1, { cpu: 3 }).map(([, field]) => field)).toEqual(['resources.cpu'])
    expect(cluster(2, { cpu: 3 }).map(([, field]) => field)).toEqual(['resources.cpu', 'cluster'])
    expect(cluster(2, { cpu: 99 }).map(([, field]) => field)).toEqual(['resources.cpu'])
  })

  it('that is interactive does not mind what the batch fields hold', () => {
    expect(judge({ type: 'interactive', startAt: '', timeout: { value: null, unit: 's' } })).toEqual([])
  })

  it.each([
    ['', 'imageRequired'],
    ['py thon', 'imageSpaces'],
    ['Python', 'imageUpper'],
    ['-x', 'imageForm'],
  ])('may not use the image "%s": %s', (image, key) => expect(told(judge({ image }))).toEqual([`error image ${key}`]))

  it.each(['python', 'ghcr.io/Owner'.toLowerCase(), 'LOCALHOST.example:5000/a/b:Tag-1', `a@sha256:${'0'.repeat(64)}`])(
    'may use the image %s',
    (image) => {
      expect(judge({ image })).toEqual([])
    },
  )

  it('has variables with names that a shell takes, once each, none of Slipway, and secrets with values', () => {
    const names = ['', '1A', 'A-B', 'A', 'A', 'SLIPWAY_X', 'API_KEY', 'FREE']
    expect(told(judge({ env: names.map((name) => ({ name, value: '' })) }))).toEqual([
      'error env[0].name envNameRequired',
      'error env[1].name envName',
      'error env[2].name envName',
      'error env[4].name envDuplicate',
      'error env[5].name envReserved',
      'error env[6].value envValue',
    ])
  })

  it('waits for what is promised to others and is refused beyond the machine', () => {
    expect(told(judge({ cpu: 2 }))).toEqual([])
    expect(told(judge({ cpu: 3 }))).toEqual(['warning resources.cpu cpuWaits'])
    expect(told(judge({ cpu: 9 }))).toEqual(['error resources.cpu cpuMax'])
    expect(told(judge({ cpu: null }))).toEqual(['error resources.cpu cpuRequired'])
    // Its engine is silent: what the machine has is not known.
    expect(told(judge({ cpu: 9 }, [{ ...machine, cpus: 0, memory: 0 }]))).toEqual([])
    expect(told(judge({ cpu: 1.5 }))).toEqual(['error resources.cpu cpuWhole'])
    expect(told(judge({ memory: { value: 5, unit: 'g' } }))).toEqual(['warning resources.memory memoryWaits'])
    expect(told(judge({ memory: { value: 17, unit: 'g' } }))).toEqual(['error resources.memory memoryMax'])
    expect(told(judge({ memory: { value: 63, unit: 'm' } }))).toEqual(['error resources.memory memoryMin'])
    expect(told(judge({ memory: { value: null, unit: 'm' } }))).toEqual(['error resources.memory memoryRequired'])
  })

  it('is not measured against machines that are not reached', () => {
    expect(judge({ cpu: 500 }, [{ ...machine, online: false }])).toEqual([])
    expect(told(judge({ agent: 'gone' }))).toEqual(['error agent agentUnknown'])
  })

  it('has less shared memory than memory', () => {
    const memory = { value: 1, unit: 'g' } as const
    expect(told(judge({ memory, shm: { value: 1, unit: 'g' } }))).toEqual(['error resources.shm shmMax'])
    expect(told(judge({ memory, shm: { value: 0, unit: 'g' } }))).toEqual(['error resources.shm shmRequired'])
    expect(told(judge({ memory, shm: { value: null, unit: 'g' } }))).toEqual(['error resources.shm shmRequired'])
    expect(told(judge({ memory, shm: { value: 512, unit: 'm' } }))).toEqual(['warning resources.shm shmLarge'])
    expect(judge({ memory, shm: { value: 256, unit: 'm' } })).toEqual([])
  })

  it('has 1 to 1000 threads', () => {
    expect([null, 0, 1001, 2.5].map((threads) => told(judge({ threads }))[0])).toEqual(
      Array(4).fill('error threads threads'),
    )
    expect([1, 1000].flatMap((threads) => judge({ threads }))).toEqual([])
  })

  it('mounts directories to places of their own', () => {
    const mount = (source: string, target = '') => ({ source, target, readOnly: false })
    expect(
      told(
        judge({
          mounts: [
            mount(''),
            mount('data'),
            mount('/a/x'),
            mount('/b/x'),
            mount('/c', '/home/work'),
            mount('/d', '/etc/d'),
            mount('/e', '..'),
          ],
        }),
      ),
    ).toEqual([
      'error mounts[0].source sourceRequired',
      'error mounts[1].source sourceAbsolute',
      'error mounts[3].target targetDuplicate',
      'error mounts[4].target targetHome',
      'error mounts[5].target targetSystem',
      'error mounts[6].target targetSystem',
    ])
    expect(told(judge({ mounts: [mount('/a', 'x y')] }))).toEqual(['error mounts[0].target targetCharacters'])
    expect(
      judge({ mounts: [mount('/a'), mount('/b', '/data'), mount('/c', 'in/side'), mount('/d', '/opt/d')] }),
    ).toEqual([])
  })

  it('opens ports', () => {
    expect(told(judge({ ports: ['8080', '80', '8080'] }))).toEqual([
      'error ports[1] portRange',
      'error ports[2] portDuplicate',
    ])
  })
})

describe('a mount target', () => {
  it('lands under the home unless it is absolute', () => {
    expect(mountTarget({ source: '/a/data/', target: '' })).toBe('/home/work/data')
    expect(mountTarget({ source: '/a', target: './in/../out' })).toBe('/home/work/out')
    expect(mountTarget({ source: '/a', target: '/data//x' })).toBe('/data/x')
  })
})

describe('issues', () => {
  it('belong to the step of their field', () => {
    expect(['name', 'env[3].name', 'resources.shm', 'mounts[0].target', 'ports[1]', 'other', ''].map(stepOf)).toEqual([
      'type',
      'environment',
      'environment',
      'storage',
      'network',
      'confirm',
      'confirm',
    ])
  })

  it('of the server join those found here', () => {
    const draft = { ...good, name: 'abc', ports: ['9000:9001', '8080'] }
    const merged = mergeIssues(
      validate(draft, { now, liveNames: new Set(), machines: [] }),
      draft,
      [
        { field: 'name', code: 'session_create_invalid', message: 'too short' },
        {
          field: 'ports[2]',
          code: 'session_create_invalid',
          message: '8080 belongs to Jupyter',
          hint: 'Choose another.',
        },
        { field: 'image', code: 'session_create_invalid', message: 'no such image' },
      ],
      [
        { field: 'image', code: 'w', message: 'large' },
        { field: 'resources.memory', code: 'w', message: 'will wait' },
      ],
    )
    expect(merged.map((i) => i.message ?? i.key)).toEqual([
      'nameShort',
      '8080 belongs to Jupyter',
      'no such image',
      'will wait',
    ])
    expect(issueAt(merged, 'ports[1]')?.hint).toBe('Choose another.')
    expect(stepsInError(merged)).toEqual(['type', 'environment', 'network'])
  })
})
