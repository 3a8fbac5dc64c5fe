import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { FailureList } from './failures'

/** What looks into real containers. All others need no Docker, and pass with no network: build/ci/offline.sh. */
const containers = [
  'apps',
  'clone',
  'driver',
  'ends',
  'jupyter',
  'lab',
  'move',
  'panes',
  'prompts',
  'restart',
  'sessions',
  'terminal',
  'tiles',
  'warm',
].map((name) => `${name}.e2e.ts`)

/** What without Docker goes through every dialog or many states, or waits for minutes: build/ci/verify.sh. */
const thorough = [
  'axe',
  'demo',
  'dialogs',
  'explorer',
  'folders',
  'history',
  'homes',
  'images',
  'list',
  'notices',
  'playground',
  'queue',
  'services',
  'sync',
].map((name) => `${name}.e2e.ts`)
/** What needs Docker and an image that takes long to make: build/ci/verify.sh. */
const images = 'jupyterlab.e2e.ts'
/** What needs a Slurm cluster and Docker: build/ci/slurm.sh build/ci/docker.sh npm … --project cluster. */
const cluster = 'cluster.e2e.ts'

// Drives the real program in a real browser. Each file has a program and a browser of its own. Those that run alone
// wait for as long as they work, so there are more of them at a time than the processors of the smallest machine.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  resolve: { alias: { '@': fileURLToPath(new URL('../src', import.meta.url)) } },
  test: {
    environment: 'node',
    isolate: false,
    testTimeout: 400_000,
    hookTimeout: 300_000,
    reporters: ['verbose', new FailureList()],
    projects: [
      {
        extends: true,
        test: {
          name: 'offline',
          include: ['**/*.e2e.ts'],
          exclude: [...containers, ...thorough, images, cluster],
          setupFiles: ['./offline.ts'],
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: 'thorough',
          include: thorough,
          setupFiles: ['./offline.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: { name: 'containers', include: containers, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      { extends: true, test: { name: 'images', include: [images], sequence: { groupOrder: 2 } } },
      { extends: true, test: { name: 'cluster', include: [cluster], sequence: { groupOrder: 2 } } },
    ],
  },
})
