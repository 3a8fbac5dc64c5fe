import { useMemo } from 'react'
import { useAgents, useDevices, useMachines } from '@/api/hooks'
import type { DeviceBoard, Machine } from '@/api/types.gen'

/**
 * The machines that a draft may land on, those of its resource group, and their devices; undefined while nothing is
 * known.
 */
export function useMachinesFor(group: string): { machines: Machine[] | undefined; boards: DeviceBoard[] | undefined } {
  const agents = useAgents().data
  const machines = useMachines().data
  const boards = useDevices().data
  return useMemo(() => {
    const inGroup = new Set((agents ?? []).filter((a) => a.group === group).map((a) => a.name))
    // A group that there is not leaves every machine to choose from.
    const fits = ({ agent }: { agent: string }) => inGroup.size === 0 || inGroup.has(agent)
    return { machines: machines?.filter(fits), boards: boards?.filter(fits) }
  }, [agents, machines, boards, group])
}
