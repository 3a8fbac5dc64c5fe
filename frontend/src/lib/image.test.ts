import { describe, expect, it } from 'vitest'
import { splitImage } from './image'

describe('splitImage', () => {
  it.each([
    ['python', { registry: '', name: 'python', tag: 'latest' }],
    ['pytorch/pytorch:2.6', { registry: '', name: 'pytorch/pytorch', tag: '2.6' }],
    ['ghcr.io/team/train:1', { registry: 'ghcr.io', name: 'team/train', tag: '1' }],
    ['localhost:5000/x', { registry: 'localhost:5000', name: 'x', tag: 'latest' }],
    ['x@sha256:0123456789abcdef0123', { registry: '', name: 'x', tag: 'sha256:0123456789ab' }],
  ])('%s', (reference, parts) => expect(splitImage(reference)).toEqual(parts))
})
