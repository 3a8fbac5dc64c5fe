import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { FailureList } from './failures'

/** What looks into real containers. All others need no Docker, and pass with no network: build/ci/offline.sh. */
const containers = [
  'apps',
  'driver',
  'ends',
  'jupyter',
  'lab',
  'panes',
  'prompts',
  'restart',
  'sessions',
  'terminal',
  'tiles',
].map((name) => `${name}.e2e.ts`)

// Drives the real program in a real browser. Two files at a time: each has a program and a browser of its own, and they
// share the machine's CPUs and memory.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  resolve: { alias: { '@': fileURLToPath(new URL('../src', import.meta.url)) } },
  test: {
    environment: 'node',
    maxWorkers: 2,
    testTimeout: 400_000,
    hookTimeout: 300_000,
    reporters: ['verbose', new FailureList()],
    projects: [
      {
        extends: true,
        test: { name: 'offline', include: ['**/*.e2e.ts'], exclude: containers, setupFiles: ['./offline.ts'] },
      },
      { extends: true, test: { name: 'containers', include: containers } },
    ],
  },
})
