import { describe, expect, it } from 'vitest'
import type { Image } from '@/api/types.gen'
import { minimumOf } from './images'

const MIB = 1024 ** 2
const least = { cpu: 1, memory: 64 * MIB }
const image = (labels: Record<string, string>): Image => ({
  id: 'sha256:a',
  refs: ['python:3.12'],
  size: 1,
  createdAt: '2026-01-01T00:00:00Z',
  arch: 'amd64',
  labels,
  usedBy: [],
  agent: 'local',
})

describe('the minimum of an image', () => {
  it('is what its labels say', () => {
    expect(
      minimumOf(
        'docker.io/library/python:3.12',
        [image({ 'ai.backend.resource.min.cpu': '2', 'ai.backend.resource.min.mem': '512m' })],
        least,
      ),
    ).toEqual({ cpu: 2, memory: 512 * MIB })
  })
  it('is completed by the least of all, and by its own labels first', () => {
    expect(
      minimumOf('python:3.12', [image({ 'slipway.min.memory': '1g', 'ai.backend.resource.min.mem': '512m' })], least),
    ).toEqual({ cpu: 1, memory: 1024 * MIB })
    expect(minimumOf('python:3.12', [image({ 'slipway.min.memory': '1m' })], least)).toEqual(least)
  })
  it('is unknown where the image is elsewhere, silent, or talks nonsense', () => {
    expect(minimumOf('python:3.13', [image({ 'slipway.min.cpu': '2' })], least)).toBeNull()
    expect(minimumOf('python:3.12', [image({})], least)).toBeNull()
    expect(
      minimumOf('python:3.12', [image({ 'slipway.min.cpu': 'many', 'slipway.min.memory': '-' })], least),
    ).toBeNull()
  })
})
