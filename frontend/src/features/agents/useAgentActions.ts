import { call } from '@/api/client'

import { useStartOperation } from '@/api/useOperation'

/** What can be set going with one agent. Each goes on as an operation, which is shown wherever the agent is. */
export function useAgentActions(name: string) {
  const start = useStartOperation()
  return {
    probe: () => void start(() => call('agent-probe', { path: { agent: name } })),
    upgrade: () => void start(() => call('agent-upgrade', { path: { agent: name } })),
    reconnect: () => void start(() => call('agent-reconnect', { path: { agent: name } })),
    remove: (uninstall: boolean) => start(() => call('agent-remove', { path: { agent: name }, body: { uninstall } })),
  }
}
