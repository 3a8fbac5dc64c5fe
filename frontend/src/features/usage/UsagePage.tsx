import { ServicesUsage } from './ServicesUsage'
import { SessionsUsage } from './SessionsUsage'
import { useUsageState } from './useUsageState'

/** What sessions used, or what was asked of services. */
export function UsagePage() {
  const [state, change] = useUsageState()
  const Shown = state.view === 'services' ? ServicesUsage : SessionsUsage
  return <Shown state={state} change={change} />
}
