import { describe, expect, it } from 'vitest'
import { type Draft, EMPTY_DRAFT } from './draft'
import { issueAt, mergeIssues, stands, stepOf, stepsInError } from './issues'
import { shownIssues } from './issueText'
import { validate } from './validate'

const now = Date.parse('2026-01-01T12:00:00Z')
const good: Draft = { ...EMPTY_DRAFT, image: 'python:3.12' }
const told = (change: Partial<Draft>) => validate({ ...good, ...change }, now).map((i) => `${i.field} ${i.key}`)

describe('a draft', () => {
  it('with nothing but an image is complete', () => {
    expect(told({})).toEqual([])
  })

  it('of a batch needs a command, a start in the future and a whole timeout', () => {
    const batch = { type: 'batch', command: 'true' } as const
    expect(told({ ...batch, command: ' \n', startAt: '', timeout: { value: 1.5, unit: 'm' } })).toEqual([
      'timeout timeoutNumber',
      'command commandRequired',
      'notBefore startRequired',
    ])
    expect(told({ ...batch, startAt: '2026-01-01T12:00:00Z' })).toEqual(['notBefore startPast'])
    expect(told({ ...batch, startAt: '2026-01-01T12:00:01Z', timeout: { value: 1, unit: 'w' } })).toEqual([])
  })

  it('that is interactive does not mind what the batch fields hold', () => {
    expect(told({ type: 'interactive', startAt: '', timeout: { value: null, unit: 's' } })).toEqual([])
  })

  it('names every variable, and enters the values of secrets', () => {
    expect(told({ env: ['', 'API_KEY', 'FREE'].map((name) => ({ name, value: '' })) })).toEqual([
      'env[0].name envNameRequired',
      'env[1].value envValue',
    ])
  })

  it('has numbers in the fields for numbers', () => {
    expect([null, 0, 1.5].flatMap((cpu) => told({ cpu }))).toEqual([
      'resources.cpu cpuRequired',
      'resources.cpu cpuWhole',
      'resources.cpu cpuWhole',
    ])
    // A spec means its default by zero.
    for (const value of [null, 0]) {
      expect(told({ memory: { value, unit: 'm' } })).toEqual(['resources.memory memoryRequired'])
      expect(told({ shm: { value, unit: 'm' } })).toEqual(['resources.shm shmRequired'])
    }
    expect([null, 0, 1001, 2.5].flatMap((threads) => told({ threads }))).toEqual(Array(4).fill('threads threads'))
    expect([1, 1000].flatMap((threads) => told({ threads }))).toEqual([])
  })

  it('says what is mounted, and which ports', () => {
    const mount = (source: string) => ({ source, target: '', readOnly: false })
    expect(told({ mounts: [mount('/a'), mount(' ')], ports: ['8080', 'x', '9:8'] })).toEqual([
      'mounts[1].source sourceRequired',
      'ports[1] portFormat',
      'ports[2] portOrder',
    ])
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

  it('wait until their step was left where nothing is entered yet', () => {
    const issues = validate({ ...good, env: [{ name: '', value: '' }], cpu: 0 }, now)
    expect(shownIssues(issues, new Set()).all.map((i) => i.key)).toEqual(['cpuWhole'])
    expect(shownIssues(issues, new Set(['environment'])).all.map((i) => i.key)).toEqual(['envNameRequired', 'cpuWhole'])
  })

  const fault = (field: string, message: string) => ({ field, kind: 'invalid' as const, message })

  it('of the server join those found here, one of each field', () => {
    const draft = { ...good, cpu: 0, ports: ['9000:9001', '8080'] }
    const merged = mergeIssues(
      [...validate(draft, now), { field: 'cluster', severity: 'warning', key: 'clusterWaits' }],
      draft,
      [
        fault('resources.cpu', 'too few'),
        { ...fault('ports[2]', '8080 belongs to Jupyter'), hint: 'Choose another.' },
        fault('image', 'no such image'),
        fault('image', 'nor any like it'),
        fault('cluster', 'too many'),
      ],
      [fault('image', 'large'), fault('resources.memory', 'will wait')],
    )
    expect(merged.map((i) => i.message ?? i.key)).toEqual([
      'cpuWhole',
      '8080 belongs to Jupyter',
      'no such image',
      'too many',
      'will wait',
    ])
    expect(issueAt(merged, 'ports[1]')?.hint).toBe('Choose another.')
    expect(stepsInError(merged)).toEqual(['environment', 'network'])
  })

  it('of the server are in the language of the page', () => {
    const said = [{ say: 'portReserved', with: [{ hole: 'port', text: '7420' }] }]
    const [issue] = mergeIssues([], good, [{ ...fault('name', 'as it came'), said: [{ say: 'imageUpper' }] }], [])
    expect(issue).toMatchObject({
      key: 'imageUpper',
      message: expect.stringMatching(/^An image name must be lowercase/),
    })
    expect(mergeIssues([], good, [{ ...fault('ports', 'x'), said }], [])[0]?.message).toContain('than 7420')
  })

  it('stay while something else is entered, and not where an entry went away', () => {
    const spec = { image: 'a', resources: {}, env: [{ name: 'A', value: '' }] }
    expect(stands(fault('name', ''), spec, { ...spec, name: 'other' })).toBe(true)
    expect(stands(fault('env[0].name', ''), spec, { ...spec, env: [{ name: 'B', value: '' }] })).toBe(true)
    expect(stands(fault('env[0].name', ''), spec, { ...spec, env: [] })).toBe(false)
  })
})
