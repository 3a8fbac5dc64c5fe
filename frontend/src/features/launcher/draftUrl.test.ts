import { describe, expect, it } from 'vitest'
import { recallDraft, rememberDraft } from './address'
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
  setup: 'pip install einops',
  noSSH: true,
  admin: true,
}

describe('the draft in the address', () => {
  it('comes back as it was', () => {
    expect(decodeDraft(encodeDraft(full))).toEqual({ ...full, env: full.env.map(({ name }) => ({ name, value: '' })) })
  })

  it('carries no value of a variable, and no name that is none', () => {
    const text = encodeDraft({
      ...EMPTY_DRAFT,
      env: [
        { name: 'EPOCHS', value: 'geheim' },
        { name: 'HF_TOKEN=geheim', value: '' },
        { name: 'hf geheim', value: '' },
      ],
    })
    expect(decodeDraft(text).env).toEqual([{ name: 'EPOCHS', value: '' }])
    expect(text).not.toContain('geheim')
  })

  it.each<Partial<Draft>>([
    { name: 'TOKEN=geheim' },
    { name: 'x'.repeat(60) + 'geheim' },
    { image: 'python geheim' },
    { agent: 'TOKEN=geheim' },
    { group: 'a\ngeheim' },
    { owner: '"geheim"' },
    { label: 'KEY=geheim' },
    { after: ['{geheim}'] },
    { ports: ['geheim'] },
    { startAt: 'geheim' },
    { mounts: [{ source: 'geheim', target: '', readOnly: false }] },
    { mounts: [{ source: '', folder: 'x/geheim', target: '', readOnly: false }] },
    { type: 'batch', command: 'HF_TOKEN=geheim python train.py' },
    { type: 'batch', command: 'wandb login\ncurl --api-key geheim' },
    { accelerator: { ...EMPTY_DRAFT.accelerator, mode: 'mig', profile: 'KEY=geheim' } },
  ])('leaves out what does not belong into its field: %o', (entered) => {
    expect(encodeDraft({ ...EMPTY_DRAFT, ...entered })).not.toContain('geheim')
  })

  it('is kept whole in the tab for a reload, but for the values of secrets', () => {
    const draft: Draft = {
      ...EMPTY_DRAFT,
      name: 'not a name',
      env: [
        { name: 'EPOCHS', value: '3' },
        { name: 'HF_TOKEN', value: 'geheim' },
        { name: 'TOKEN=geheim', value: '' },
      ],
    }
    const text = encodeDraft(draft)
    rememberDraft(text, draft)
    expect(JSON.stringify({ ...sessionStorage })).not.toContain('geheim')
    expect(recallDraft(text)).toEqual({
      ...draft,
      env: [
        { name: 'EPOCHS', value: '3' },
        { name: 'HF_TOKEN', value: '' },
      ],
    })
    expect(recallDraft('another')).toBeUndefined()
    expect(recallDraft('')).toBeUndefined()
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
