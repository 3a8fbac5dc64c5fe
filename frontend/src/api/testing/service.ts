import type { Service } from '../types.gen'

/** A service that answers with one replica, changed as asked for. */
export function makeService(change: Partial<Service> = {}): Service {
  return {
    name: 'llama-chat',
    owner: 'me',
    agent: 'local',
    replicas: 1,
    revision: 1,
    state: 'READY',
    why: '1 of 1 replica is healthy.',
    revisions: [
      {
        number: 1,
        createdAt: '2026-01-02T03:04:05Z',
        spec: {
          type: 'inference',
          image: 'llama:1',
          resources: { cpu: 2, memory: 4 * 1024 ** 3 },
          serving: { port: 8080, command: ['llama-server', '--model', '/models/a b.gguf'], models: ['llama-3'] },
        },
      },
    ],
    live: [{ session: 'r1', revision: 1, state: 'healthy', since: '2026-01-02T03:04:06Z', outstanding: 0 }],
    tokens: [],
    addresses: [{ from: 'machine', url: 'http://127.0.0.1:40001/v1' }],
    traffic: {
      waiting: 0,
      outstanding: 0,
      requests: 12,
      failed: 0,
      promptTokens: 100,
      completionTokens: 3456,
      firstWordMs: 180,
      firstWordP99Ms: 950,
      tokensPerSecond: 41.5,
    },
    scaling: { target: 1 },
    createdAt: '2026-01-02T03:04:05Z',
    address: 'http://127.0.0.1:40001/v1',
    ...change,
  }
}
