import type { Agent } from '@/api/types.gen'
import type { Draft } from './draft'

/** Whether a draft may be launched for somebody else: it names a shared machine that one rules. */
export function rules(draft: Draft, agents: readonly Agent[]): boolean {
  return agents.some((agent) => agent.name === draft.agent && !agent.local && agent.role === 'admin')
}

/** The person for whom a draft is launched; empty: oneself. */
export function ownerOf(draft: Draft, agents: readonly Agent[]): string {
  return rules(draft, agents) ? draft.owner.trim() : ''
}
