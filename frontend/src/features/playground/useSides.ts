import { useSearchParams } from 'react-router'
import type { ServiceRef } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { answers } from '@/lib/serviceState'

export const isSame = (a: ServiceRef, b: ServiceRef) => a.name === b.name && a.agent === b.agent

export interface Sides {
  /** What is talked to: one service, or two to compare. */
  sides: readonly ServiceRef[]
  choose: (side: number, of: ServiceRef) => void
  /** Puts another service beside the first, or takes it away. */
  compare: (on: boolean) => void
}

const params = [
  ['service', 'agent'],
  ['beside', 'besideAgent'],
] as const

/** The services that the address names. Without a name it is that of before, else the first one that answers. */
export function useSides(services: readonly Service[], before: readonly (ServiceRef | undefined)[]): Sides {
  const [address, setAddress] = useSearchParams()
  const named = (side: 0 | 1): ServiceRef | undefined => {
    const name = address.get(params[side][0])
    if (!name) return undefined
    const agent = address.get(params[side][1])
    const found = services.find((one) => one.name === name && (!agent || one.agent === agent))
    return found ?? { name, agent: agent ?? '' }
  }
  const byItself = (side: 0 | 1, other?: ServiceRef) => {
    const was = services.find((one) => before[side] && isSame(one, before[side]))
    const rest = services.filter((one) => !other || !isSame(one, other))
    return was ?? rest.find(answers) ?? rest[0] ?? services[0]
  }
  const set = (side: number, of: ServiceRef | undefined) =>
    setAddress(
      (old) => {
        const next = new URLSearchParams(old)
        const [name, agent] = params[side === 1 ? 1 : 0]
        next.delete(name)
        next.delete(agent)
        if (of) {
          next.set(name, of.name)
          next.set(agent, of.agent)
        }
        return next
      },
      { replace: true },
    )
  const first = named(0) ?? byItself(0)
  const second = named(1)
  return {
    sides: [first, second].filter((one) => one !== undefined),
    choose: set,
    compare: (on) => set(1, on ? byItself(1, first) : undefined),
  }
}
