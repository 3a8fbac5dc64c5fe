import { describe, expect, it } from 'vitest'
import { makeService } from '@/api/testing/service'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { snippet } from './snippets'
import { addressOf, answers, healthyOf, modelNames, replicaTone, stateRank, toneOf } from './states'

describe('a state', () => {
  it.each([
    ['READY', 'good', true],
    ['DEGRADED', 'part', true],
    ['UPDATING', 'part', true],
    ['UNREACHABLE', 'bad', false],
    ['FAILED', 'bad', false],
    ['DEPLOYING', 'busy', false],
    ['ASLEEP', 'off', false],
    ['STOPPED', 'off', false],
    ['INVENTED', 'off', false],
  ])('%s is %s', (state, tone, does) => {
    expect(toneOf(state)).toBe(tone)
    expect(answers({ state })).toBe(does)
  })
  it('that needs a person comes first', () => {
    expect(['READY', 'INVENTED', 'FAILED'].toSorted((a, b) => stateRank(a) - stateRank(b))).toEqual([
      'FAILED',
      'READY',
      'INVENTED',
    ])
  })
  it('of a replica has a tone', () => {
    expect(['healthy', 'unhealthy', 'draining', 'invented'].map(replicaTone)).toEqual(['good', 'bad', 'off', 'off'])
  })
})

describe('a service', () => {
  it('is named in its address, with its machine', () => {
    expect(addressOf({ name: 'chat', agent: 'lab 1' })).toBe('/services/chat?on=lab%201')
  })
  it('counts its healthy replicas', () => {
    const [one] = makeService().live
    expect(healthyOf({ live: [one!, { ...one!, state: 'warming' }] })).toBe(1)
  })
  it('is asked for by its models, or by its name', () => {
    expect(modelNames(makeService())).toEqual(['llama-3'])
    expect(modelNames(makeService({ revisions: [] }))).toEqual(['llama-chat'])
  })
})

describe('figures', () => {
  it('are short', () => {
    expect([0, 12_480, 1_234_567].map(formatCount)).toEqual(['0', '12,480', '1.2M'])
    expect([0, 180, 1400].map(formatFirstWord)).toEqual(['–', '180 ms', '1.4 s'])
  })
})

describe('a snippet', () => {
  const endpoint = { address: 'http://127.0.0.1:40001/v1', model: `it's "m"`, open: false }
  it('asks for the model with a token', () => {
    for (const client of ['curl', 'python', 'javascript'] as const) {
      expect(snippet(client, endpoint)).toContain('http://127.0.0.1:40001/v1')
      expect(snippet(client, endpoint)).toContain('YOUR_TOKEN')
    }
    expect(snippet('python', endpoint)).toContain(String.raw`model="it's \"m\""`)
  })
  it('of a public service has none', () => {
    for (const client of ['curl', 'python', 'javascript'] as const)
      expect(snippet(client, { ...endpoint, open: true })).not.toContain('YOUR_TOKEN')
  })
  it('for a shell keeps its quotes', () => {
    const body = /-d '([\s\S]*)'$/.exec(snippet('curl', endpoint))?.[1]?.replaceAll(`'\\''`, "'")
    expect(JSON.parse(body ?? '')).toMatchObject({ model: `it's "m"`, stream: true })
  })
})
