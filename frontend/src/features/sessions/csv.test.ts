import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import type { Environment } from '@/api/types.gen'
import { toCsv } from './csv'

const around = { environments: [], usage: {} }

describe('toCsv', () => {
  it('writes one line a session under a line of names', () => {
    const lines = toCsv([makeSession({ id: 'aaa', name: 'one', exitCode: 3 })], around).split('\r\n')
    expect(lines[0]).toMatch(/^id,name,type,status,/)
    expect(lines[1]).toMatch(/^aaa,one,interactive,RUNNING,/)
    expect(lines).toHaveLength(3)
  })
  it('quotes commas, quotes and line ends', () => {
    expect(toCsv([makeSession({ name: 'a,"b"\nc' })], around)).toContain('"a,""b""\nc"')
  })
  it('disarms what a spreadsheet would run', () => {
    expect(toCsv([makeSession({ name: '=cmd()' })], around)).toContain(",'=cmd(),")
  })
  it('writes the environment and what is used now of running sessions alone', () => {
    const environments: Environment[] = [
      {
        id: 'py',
        title: 'Python',
        icon: '',
        summary: '',
        versions: [{ title: '3.12', image: 'python:3.12', installed: true, size: 0, agents: [] }],
      },
    ]
    const sample = {
      session: 'a',
      at: '2026-01-01T00:00:00Z',
      cpu: 1.5,
      memory: 2048,
      memLimit: 0,
      netRx: 0,
      netTx: 0,
      diskRead: 0,
      diskWrite: 0,
      pids: 1,
      gpus: [{ device: 'G', util: 4000, memory: 7 }],
    }
    const sessions = [
      makeSession({ id: 'a', image: 'python:3.12' }),
      makeSession({ id: 'b', image: 'other:1', status: 'TERMINATED' }),
    ]
    const [names, first, second] = toCsv(sessions, { environments, usage: { a: sample, b: sample } })
      .split('\r\n')
      .map((line) => line.split(','))
    const values = (cells: string[] | undefined) =>
      ['environment', 'cpus_used', 'memory_used_bytes', 'gpu_load', 'vram_used_bytes'].map(
        (name) => cells?.[names?.indexOf(name) ?? -1],
      )
    expect(values(first)).toEqual(['Python 3.12', '1.5', '2048', '0.4', '7'])
    expect(values(second)).toEqual(['', '', '', '', ''])
  })
})
