import { describe, expect, it } from 'vitest'
import { connectionTone, formatRtt, isReached } from './connection'

describe('a way to an agent', () => {
  it('has a tone for every state, and trouble for one that is new', () => {
    expect(['connected', 'connecting', 'probing', 'down', 'question', 'off', 'bewitched'].map(connectionTone)).toEqual([
      'good',
      'busy',
      'busy',
      'bad',
      'asks',
      'off',
      'bad',
    ])
  })
  it('is live while it is only being probed', () => {
    const of = (state: string) => isReached({ local: false, connection: { state } })
    expect(['connected', 'probing', 'connecting', 'down', 'question'].map(of)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
  })
  it('is measured in milliseconds', () =>
    expect([0.43, 9.96, 38.4].map(formatRtt)).toEqual(['0.4 ms', '10.0 ms', '38 ms']))
})
