import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { HIDDEN } from '@/api/rules.gen'
import { makeService } from '@/api/testing/service'
import { GPU_MEMORY_SHARE, type RuntimeId, runtimeIds, runtimes } from '@/api/runtimes.gen'
import type { Spec } from '@/api/types.gen'
import { type Draft, EMPTY, fill, parseEnv, shareOf, withRuntime } from './draft'
import { draftOf, requestFor } from './request'
import { argvOf, memoryFlag, type Start } from './runtimes'
import { parseSpan, writeSpan } from './span'

const GIB = 1024 ** 3
const draft = (change: Partial<Draft>): Draft => ({ ...EMPTY, name: 'chat', ...change })

describe('a runtime', () => {
  it('fills in image, command, port and health check', () => {
    const request = requestFor(draft({ folder: 'models', path: '/llama.gguf' }))
    expect(request).toEqual({
      name: 'chat',
      replicas: 1,
      spec: {
        type: 'inference',
        image: 'ghcr.io/ggml-org/llama.cpp:server',
        resources: { cpu: 2, memory: 4 * GIB },
        mounts: [{ folder: 'models', target: '/models', readOnly: true }],
        serving: {
          port: 8080,
          command: [
            '/app/llama-server',
            '--model',
            '/models/llama.gguf',
            '--alias',
            'chat',
            '--port',
            '8080',
            '--metrics',
          ],
          health: { path: '/health', initialDelay: '10m' },
        },
      },
    })
  })

  it('has another image and flag with a GPU', () => {
    const filled = fill(draft({ folder: 'models', gpu: 'devices', amount: 1 }))
    expect(filled.image).toBe('ghcr.io/ggml-org/llama.cpp:server-cuda')
    expect(filled.argv).toEqual(expect.arrayContaining(['--n-gpu-layers', '999']))
  })

  it('takes no more memory of a device than is requested', () => {
    const half = withRuntime(draft({ gpu: 'share', amount: 50 }), 'vllm')
    expect(fill({ ...half, model: 'Qwen/Q' }).argv?.slice(-2)).toEqual(['--gpu-memory-utilization', GPU_MEMORY_SHARE])
    const memory = draft({ gpu: 'memory', amount: 24 })
    expect(fill(withRuntime(memory, 'sglang')).argv?.slice(-2)).toEqual(['--mem-fraction-static', GPU_MEMORY_SHARE])
    expect(fill({ ...half, amount: 100 }).argv).not.toContain(GPU_MEMORY_SHARE)
    expect(shareOf(half, 0)).toBe('0.50')
    expect(shareOf(memory, 80 * GIB)).toBe('0.30')
    expect(shareOf(memory, 0)).toBeUndefined()
    expect(shareOf(draft({ gpu: 'devices', amount: 2 }), 80 * GIB)).toBeUndefined()
    expect(shareOf(draft({ gpu: 'memory', amount: 80 }), 80 * GIB)).toBeUndefined()
  })

  it.each(runtimeIds.filter((id) => memoryFlag(runtimes[id])))('%s says the flag that it sets', (id) => {
    const set = fill(withRuntime(draft({ gpu: 'share', amount: 30 }), id)).argv ?? []
    expect(set[set.indexOf(memoryFlag(runtimes[id]) ?? '') + 1]).toBe(GPU_MEMORY_SHARE)
  })

  it('has the command that the command line gives it', () => {
    interface Line {
      runtime: RuntimeId
      model: { source: Start['source']; name: string; served: string }
      gpu?: boolean
      part?: boolean
      argv: string[]
    }
    const lines = JSON.parse(readFileSync('../backend/runtimes/testdata/commands.json', 'utf8')) as Line[]
    expect(lines.length).toBeGreaterThan(40)
    for (const { runtime, model, gpu = false, part = false, argv } of lines) {
      const { port } = runtimes[runtime]
      const start = { source: model.source, model: model.name, served: model.served, port, gpu, part }
      expect(argvOf(runtimes[runtime], start), `${runtime} ${JSON.stringify(start)}`).toEqual(argv)
    }
  })

  it('replaces what was entered for another, but not the folder', () => {
    const other = withRuntime(draft({ folder: 'models', image: 'mine:1', command: 'x', port: 1234 }), 'vllm')
    expect(other).toMatchObject({ folder: 'models', source: 'folder', image: null, command: null, port: null })
    expect(withRuntime(draft({}), 'vllm').source).toBe('name')
  })

  it('may leave the command to the image', () => {
    const { spec } = requestFor(withRuntime(draft({}), 'nim'))
    expect(spec.serving).toEqual({ port: 8000, health: { path: '/v1/health/ready', initialDelay: '30m' } })
    expect(spec).not.toHaveProperty('mounts')
  })

  it('says to Ollama where its models are, which it may write', () => {
    const { spec } = requestFor(withRuntime(draft({ folder: 'models' }), 'ollama'))
    expect(spec.env).toEqual([{ name: 'OLLAMA_MODELS', value: '/models' }])
    expect(spec.mounts).toEqual([{ folder: 'models', target: '/models' }])
  })
})

describe('a request', () => {
  it('has what was entered', () => {
    const request = requestFor(
      draft({
        runtime: 'custom',
        image: ' mine:1 ',
        command: `serve --name 'a b'`,
        port: 9000,
        health: '/up',
        delay: { value: 5, unit: 'm' },
        served: 'a, b  c',
        env: '# mine\nexport SEED=7\nEMPTY=',
        agent: 'lab',
        gpu: 'share',
        amount: 20,
        sleeps: true,
        public: true,
        replicas: 3,
      }),
    )
    expect(request).toMatchObject({ replicas: 3, sleep: '30m', public: true })
    expect(request.spec).toMatchObject({
      image: 'mine:1',
      agent: 'lab',
      accelerator: { shares: 200 },
      env: [
        { name: 'SEED', value: '7' },
        { name: 'EMPTY', value: '' },
      ],
      serving: {
        port: 9000,
        command: ['serve', '--name', 'a b'],
        models: ['a', 'b', 'c'],
        health: { path: '/up', initialDelay: '5m' },
      },
    })
  })

  it('asks for devices in each way', () => {
    const of = (gpu: Draft['gpu'], amount: number) => requestFor(draft({ gpu, amount })).spec.accelerator
    expect(of('none', 1)).toBeUndefined()
    expect(of('devices', 2)).toEqual({ devices: 2 })
    expect(of('share', 100)).toEqual({ devices: 1 })
    expect(of('memory', 8)).toEqual({ memory: 8 * GIB })
  })

  it('keeps what the form does not ask for of a service that exists', () => {
    const existing = makeService({ retry: true })
    expect(requestFor(draft({}), { existing })).toMatchObject({ retry: true })
  })

  it('has the rules and the sleep of the service that is changed', () => {
    const rules = [{ metricSource: 'router', metricName: 'waiting' }]
    const existing = makeService({ maySleep: true, rules })
    expect(requestFor(draftOf(existing), { existing })).toMatchObject({ maySleep: true, rules })
  })
})

describe('entries', () => {
  it('of time come back as they were', () => {
    expect(parseSpan('30m')).toEqual({ value: 30, unit: 'm' })
    expect(parseSpan('2w')).toEqual({ value: 14, unit: 'd' })
    expect(parseSpan('90s')).toEqual({ value: 2, unit: 'm' })
    expect(parseSpan('')).toBeUndefined()
    expect(writeSpan({ value: 2, unit: 'h' })).toBe('2h')
    expect(writeSpan({ value: null, unit: 'h' })).toBe('')
  })

  it('of variables are none where a line has no name', () => {
    expect(parseEnv('A=1\n\nB=x=y')).toEqual([
      { name: 'A', value: '1' },
      { name: 'B', value: 'x=y' },
    ])
    expect(parseEnv('A=1\nnot this')).toBeUndefined()
  })
})

describe('another revision', () => {
  const [first] = makeService().revisions
  const spec: Spec = {
    ...first!.spec,
    label: 'chat',
    threads: 2,
    env: [
      { name: 'SEED', value: '7' },
      { name: 'HF_TOKEN', value: HIDDEN },
    ],
    accelerator: { shares: 300 },
    resources: { cpu: 2, memory: 4 * GIB, shm: GIB },
    mounts: [
      { folder: 'models', target: '/models' },
      { folder: 'logs', target: 'logs' },
    ],
    serving: { ...first!.spec.serving!, health: { path: '/up', initialDelay: '5m', interval: '3s' } },
  }
  const service = makeService({ sleep: '2h', public: true, revisions: [{ ...first!, spec }] })

  it('begins as the current one, without hidden values', () => {
    expect(draftOf(service)).toMatchObject({ folder: 'models', served: 'llama-3', env: 'SEED=7\nHF_TOKEN=' })
    expect(requestFor(draftOf(service), { existing: service, base: spec })).toEqual({
      name: 'llama-chat',
      replicas: 1,
      sleep: '2h',
      public: true,
      spec: {
        ...spec,
        agent: 'local',
        env: [
          { name: 'SEED', value: '7' },
          { name: 'HF_TOKEN', value: '' },
        ],
      },
    })
  })

  it('keeps MIG instances, for which there is no field', () => {
    const base: Spec = { ...spec, accelerator: { profile: '1g.10gb', count: 2 } }
    const mig = makeService({ revisions: [{ ...first!, spec: base }] })
    expect(requestFor(draftOf(mig), { base }).spec.accelerator).toEqual(base.accelerator)
  })
})
