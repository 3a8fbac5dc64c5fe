import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { afterEach, beforeAll, expect } from 'vitest'

// Where nothing but the loopback is reached (build/ci/offline.sh), whatever tries to get further fails the test: the
// kernel counts in each network namespace how often there was no way out for a connection or a packet of anybody in it.
const counted = (process.env.SLIPWAY_OFFLINE ?? '').split(' ').filter(Boolean)

/** The words of what the kernel counts for IPv4, two lines a protocol, and for IPv6, a line each. */
const kernel = (name: string) =>
  readFileSync(`/proc/self/net/${name}`, 'utf8')
    .split('\n')
    .map((line) => line.split(/\s+/))

/** How often somebody wanted to leave since the namespace is there. */
function attempts(protocol: string): number {
  const [names = [], values = []] = kernel('snmp').filter(([first]) => first === 'Ip:')
  const value =
    protocol === 'Ip'
      ? values[names.indexOf('OutNoRoutes')]
      : kernel('snmp6').find(([name]) => name === 'Ip6OutNoRoutes')?.[1]
  if (value === undefined) throw new Error(`the kernel does not count what has no route by ${protocol}`)
  return Number(value)
}

if (counted.length > 0) {
  let before: number[] = []
  beforeAll(() => {
    expect(Object.keys(networkInterfaces())).toEqual(['lo'])
    before = counted.map(attempts)
  })
  afterEach(() => {
    const now = counted.map(attempts)
    const tried = now.map((count, i) => `${counted[i]} ${count - (before[i] ?? 0)}`)
    before = now
    expect(tried, 'attempts to leave this machine').toEqual(counted.map((protocol) => `${protocol} 0`))
  })
}
