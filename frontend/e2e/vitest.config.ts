import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { FailureList } from './failures'

// Drives the real program in a real browser. One file at a time: they share the machine's CPUs and memory.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  resolve: { alias: { '@': fileURLToPath(new URL('../src', import.meta.url)) } },
  test: {
    environment: 'node',
    include: ['**/*.e2e.ts'],
    fileParallelism: false,
    testTimeout: 400_000,
    hookTimeout: 300_000,
    reporters: ['verbose', new FailureList()],
  },
})
