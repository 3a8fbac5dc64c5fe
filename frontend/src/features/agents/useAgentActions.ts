import { probeAgent, reconnectAgent, removeAgent, upgradeAgent } from '@/api/calls'
import { useStartOperation } from '@/api/useOperation'

/** What can be set going with one agent. Each goes on as an operation, which is shown wherever the agent is. */
export function useAgentActions(name: string) {
  const start = useStartOperation()
  return {
    probe: () => void start(() => probeAgent(name)),
    upgrade: () => void start(() => upgradeAgent(name)),
    reconnect: () => void start(() => reconnectAgent(name)),
    remove: (uninstall: boolean) => start(() => removeAgent(name, { uninstall })),
  }
}
