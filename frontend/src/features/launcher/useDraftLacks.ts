import { type Feature, useLacks } from '@/api/useLacks'
import type { Draft } from './draft'
import { useMachinesFor } from './useMachinesFor'

/** Returns why something cannot be done wherever a draft may land, empty if it can. */
export function useDraftLacks(draft: Pick<Draft, 'agent' | 'group'>): (feature: Feature) => string {
  const { machines } = useMachinesFor(draft.group)
  const lacks = useLacks()
  return (feature) => lacks(draft.agent || (machines ?? []).map((m) => m.agent), feature)
}
