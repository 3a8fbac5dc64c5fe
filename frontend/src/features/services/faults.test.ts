import { describe, expect, it } from 'vitest'
import { ApiProblem } from '@/api/client'
import { EMPTY } from './draft'
import { ownFaults, refusedFields, without } from './faults'

const refusal = (fields: [string, string][]) =>
  new ApiProblem(
    {
      code: 'session_create_invalid',
      message: 'Wrong.',
      fields: fields.map(([field, message]) => ({ field, kind: 'invalid', message })),
    },
    422,
  )

describe('what an agent refuses', () => {
  it('is told at the field where it was entered', () => {
    const { faults, rest } = refusedFields(
      refusal([
        ['name', 'n'],
        ['serving.port', 'p'],
        ['serving.models[0]', 'm'],
        ['serving.health.path', 'h'],
        ['serving.health.initialDelay', 'd'],
        ['mounts[0].folder', 'f'],
        ['resources.cpu', 'c'],
        ['resources.shm', 's'],
        ['accelerator', 'g'],
        ['threads', 't'],
      ]),
    )
    expect(Object.fromEntries(Object.entries(faults).map(([field, { message }]) => [field, message]))).toEqual({
      name: 'n',
      port: 'p',
      served: 'm',
      health: 'h',
      delay: 'd',
      folder: 'f',
      cpu: 'c',
      memory: 's',
      gpu: 'g',
    })
    expect(rest.map(({ message }) => message)).toEqual(['t'])
  })

  it('includes a name that somebody else has', () => {
    const taken = new ApiProblem({ code: 'session_create_already-exists', message: 'Taken.', hint: 'Another.' }, 409)
    expect(refusedFields(taken).faults).toEqual({ name: { message: 'Taken.', hint: 'Another.' } })
  })

  it('is over once the entry is changed', () => {
    const fault = { message: 'x' }
    expect(without({ port: fault, gpu: fault }, { amount: 3 })).toEqual({ port: fault })
    expect(without({ port: fault, name: fault }, { runtime: 'vllm' })).toEqual({ name: fault })
  })
})

describe('what can be seen to be wrong', () => {
  const say = (key: string) => key
  it('is the name and what the runtime needs', () => {
    expect(Object.keys(ownFaults(EMPTY, say))).toEqual(['name', 'folder'])
    expect(ownFaults({ ...EMPTY, name: 'chat', folder: 'models' }, say)).toEqual({})
    expect(Object.keys(ownFaults({ ...EMPTY, name: 'chat', source: 'name' }, say))).toEqual(['model'])
  })
  it('is nothing but the image of a custom server', () => {
    const custom = { ...EMPTY, name: 'chat', runtime: 'custom' as const }
    expect(Object.keys(ownFaults(custom, say))).toEqual(['image'])
    expect(Object.keys(ownFaults({ ...custom, image: 'a', command: `'`, env: 'x' }, say))).toEqual(['command', 'env'])
  })
  it('is no model where the command was written by hand', () => {
    expect(ownFaults({ ...EMPTY, name: 'chat', command: 'llama-server --model /data/x.gguf' }, say)).toEqual({})
  })
})
