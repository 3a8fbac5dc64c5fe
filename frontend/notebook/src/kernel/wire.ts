import type { Bundle } from '../nbformat'

/** What the page asks of the worker in which Python runs. */
export type Request =
  | { type: 'start'; dir: string; base: string; shared: SharedArrayBuffer | null }
  | { type: 'run'; id: string; source: string; count: number }
  | { type: 'chdir'; dir: string }

/** What a cell brings forth, in the order in which it does. */
export type Emitted =
  | { type: 'stream'; name: 'stdout' | 'stderr'; text: string }
  | { type: 'display'; data: Bundle }
  | { type: 'result'; data: Bundle }
  | { type: 'error'; ename: string; evalue: string; traceback: string[] }
  | { type: 'clear'; wait: boolean }

/** What the worker tells. */
export type Told =
  | { type: 'progress'; step: 'fetch' | 'start' }
  | { type: 'ready'; version: string }
  | { type: 'failed'; message: string }
  | { type: 'emitted'; id: string; what: Emitted }
  | { type: 'ended'; id: string; ok: boolean }
  | { type: 'asked'; id: string; prompt: string }

// The shared memory: by its first byte a cell is interrupted, by the second word
// Python waits, and from the third on a line that a person has typed comes.
export const sharedBytes = 64 * 1024
export const interruptAt = 0
export const waitAt = 1
export const lengthAt = 2
export const lineAt = 16
export const interrupt = 2 // SIGINT
