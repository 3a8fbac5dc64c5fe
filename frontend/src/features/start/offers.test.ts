import { describe, expect, it } from 'vitest'
import { HIDDEN } from '@/api/rules.gen'
import { makeSession } from '@/api/testing/session'
import { firstChoice } from '@/api/environment'
import type { Agent, Environment, EnvironmentVersion, Machine, Recent } from '@/api/types.gen'
import { type Known, newOffer, recentOffers } from './offers'

const GIB = 1024 ** 3
const version = (image: string, change: Partial<EnvironmentVersion> = {}): EnvironmentVersion => ({
  title: image,
  image,
  installed: (change.agents?.length ?? 0) > 0,
  size: 0,
  agents: [],
  ...change,
})
const family = (id: string, ...versions: EnvironmentVersion[]): Environment => ({
  id,
  title: id,
  icon: '',
  summary: '',
  minMemory: GIB,
  versions,
})
const recent = (id: string, launchedAt: string, change: Partial<Recent> = {}): Recent => ({
  id,
  name: `name-${id}`,
  pinned: false,
  spec: { type: 'interactive', image: 'lab:1', name: id, resources: { cpu: 2, memory: 4 * GIB } },
  count: 1,
  launchedAt,
  ...change,
})
const known = (change: Partial<Known> = {}): Known => ({
  environments: [
    family('python', version('python:3', { agents: ['here'] })),
    family('jupyter', version('lab:1', { jupyter: 'lab' }), version('lab:2', { jupyter: 'lab', agents: ['away'] })),
  ],
  recents: [],
  sessions: [],
  agents: [{ name: 'here', local: true }, { name: 'away' }] as Agent[],
  machines: [{ agent: 'here', cpus: 8, memory: 32 * GIB }] as Machine[],
  ...change,
})

describe('the first choice', () => {
  it('has Jupyter: on this computer, else on a machine, else in the catalogue', () => {
    const { environments } = known()
    const [python, jupyter] = environments as [Environment, Environment]
    const here = family('own', version('own:1', { jupyter: 'notebook', agents: ['here'] }))
    expect(firstChoice([...environments, here], 'here')).toBe('own:1')
    expect(firstChoice(environments, 'here')).toBe('lab:2')
    expect(firstChoice([python, family('j', jupyter.versions[0]!)], 'here')).toBe('lab:1')
  })
  it('is installed where nothing has Jupyter, and needs no GPU', () => {
    const cuda: Environment = { ...family('cuda', version('cuda:1', { agents: ['here'] })), accelerator: 'required' }
    expect(firstChoice([cuda, family('a', version('a:1'), version('a:2', { agents: ['away'] }))])).toBe('a:2')
    expect(firstChoice([])).toBe('')
  })
})

describe('a new notebook', () => {
  it('asks for what this computer has plenty of, and keeps its home', () => {
    expect(newOffer(known())?.spec).toEqual({
      type: 'interactive',
      image: 'lab:2',
      resources: { cpu: 2, memory: 4 * GIB },
      keepHome: '30d',
    })
    expect(newOffer(known(), '7d')?.spec.keepHome).toBe('7d')
    const small = [{ agent: 'here', cpus: 2, memory: 8 * GIB }] as Machine[]
    expect(newOffer(known({ machines: small }))?.spec.resources).toEqual({ cpu: 1, memory: 2 * GIB })
  })
  it('is not offered without Jupyter', () => {
    expect(newOffer(known({ environments: [family('python', version('python:3'))] }))).toBeNull()
  })
})

describe('what was launched before', () => {
  it('is offered as the last notebook and what is pinned, the newest first', () => {
    const recents = [
      recent('old', '2026-01-01', { pinned: true }),
      recent('last', '2026-01-03'),
      recent('batch', '2026-01-04', { spec: { type: 'batch', image: 'lab:1', resources: {} } }),
      recent('plain', '2026-01-02', { pinned: true, spec: { image: 'python:3', resources: {} } }),
    ]
    const offers = recentOffers(known({ recents }))
    expect(offers.map(({ kind, key, jupyter }) => `${kind} ${key} ${jupyter}`)).toEqual([
      'last last lab',
      'pinned plain ',
      'pinned old lab',
    ])
  })
  it('is opened if it still runs, and else launched under a free name', () => {
    const recents = [recent('work', '2026-01-01', { session: 'aaaaaaaaaaaa' })]
    const running = makeSession({ id: 'aaaaaaaaaaaa', name: 'work', status: 'RUNNING' })
    const [open] = recentOffers(known({ recents, sessions: [running] }))
    expect(open?.session?.id).toBe('aaaaaaaaaaaa')
    const [other] = recentOffers(known({ recents, sessions: [{ ...running, id: 'bbbbbbbbbbbb' }] }))
    expect([other?.session, other?.spec.name]).toEqual([undefined, undefined])
    const [ended] = recentOffers(known({ recents, sessions: [{ ...running, status: 'TERMINATED' }] }))
    expect([ended?.session, ended?.spec.name]).toEqual([undefined, 'work'])
  })
  it('is reviewed first if a secret has to be entered', () => {
    const spec = { image: 'lab:1', resources: {}, env: [{ name: 'HF_TOKEN', value: HIDDEN }] }
    expect(recentOffers(known({ recents: [recent('a', '2026-01-01', { spec })] }))[0]?.review).toBe(true)
  })
})
