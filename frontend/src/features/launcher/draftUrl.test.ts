import { describe, expect, it } from 'vitest'
import { type Draft, EMPTY_DRAFT } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'

const full: Draft = {
  ...EMPTY_DRAFT,
  type: 'batch',
  name: 'train-1',
  command: 'python train.py\nsync',
  startAt: '2030-01-01T10:00:00.000Z',
  timeout: { value: 90, unit: 'm' },
  image: 'pytorch/pytorch:2.4',
  manual: true,
  env: [
    { name: 'EPOCHS', value: '3' },
    { name: 'EMPTY', value: '' },
  ],
  agent: 'local',
  cpu: 2,
  memory: { value: 1.5, unit: 'g' },
  shm: { value: 256, unit: 'm' },
  threads: 4,
  mounts: [{ source: '/data', target: 'in', readOnly: true }],
  ports: ['8080', '9000:9001'],
  noSSH: true,
}

describe('the draft in the address', () => {
  it('comes back as it was', () => {
    expect(decodeDraft(encodeDraft(full))).toEqual(full)
  })

  it('is nothing while nothing is entered', () => {
    expect(encodeDraft(EMPTY_DRAFT)).toBe('')
    expect(decodeDraft('')).toEqual(EMPTY_DRAFT)
  })

  it('keeps what is half entered', () => {
    const half: Draft = {
      ...EMPTY_DRAFT,
      cpu: null,
      memory: { value: null, unit: 'm' },
      threads: null,
      startAt: '',
      timeout: { value: null, unit: 'h' },
      shm: { value: null, unit: 'g' },
    }
    expect(decodeDraft(encodeDraft(half))).toEqual(half)
  })

  it('never carries the value of a secret', () => {
    const text = encodeDraft({
      ...full,
      env: [
        { name: 'hf_token', value: 'geheim' },
        { name: 'AWS_SECRET_ACCESS_KEY', value: 'geheim' },
        { name: 'DB_PASSWORD', value: 'geheim' },
        { name: 'PGPASS', value: 'geheim' },
      ],
    })
    expect(text).not.toContain('geheim')
    expect(decodeDraft(text).env.map((row) => row.name)).toEqual([
      'hf_token',
      'AWS_SECRET_ACCESS_KEY',
      'DB_PASSWORD',
      'PGPASS',
    ])
  })

  it.each([
    '{',
    'null',
    '[]',
    '7',
    '"x"',
    '{"env":5,"mounts":[7,null,[1,2]],"ports":[1],"cpu":"many","memory":{}}',
    '{"timeout":"3y","type":"system","threads":[]}',
  ])('survives an address that holds %s', (text) => {
    const draft = decodeDraft(text)
    expect(draft.type).toBe('interactive')
    expect(draft.cpu).toBe(1)
    expect(draft.memory).toEqual(EMPTY_DRAFT.memory)
    expect(draft.timeout).toBeNull()
  })
})
