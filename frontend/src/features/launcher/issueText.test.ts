import i18next from 'i18next'
import { expect, it } from 'vitest'
import { warning } from './issues'
import { issueText } from './issueText'

const t = i18next.getFixedT('en', 'launcher')

it.each([
  ['gpuWaits', { free: 0.5 }, '0.5 GPU is free. The session will wait.'],
  ['gpuWaits', { free: 1 }, '1 GPU is free. The session will wait.'],
  ['gpuWaits', { free: 1.5 }, '1.5 GPUs are free. The session will wait.'],
  ['gpuWholeWaits', { free: 0 }, '0 whole GPUs are free. The session will wait.'],
  ['gpuWholeWaits', { free: 1 }, '1 whole GPU is free. The session will wait.'],
  ['cpuWaits', { count: 1, total: 8 }, '1 of 8 CPUs is free. The session will wait.'],
  ['memoryWaits', { bytes: 1024 ** 3 }, '1 GiB is free. The session will wait.'],
])('writes %s of %o in the right number', (key, values, text) =>
  expect(issueText(warning('x', key, values), t)).toBe(text),
)
