import { useTranslation } from 'react-i18next'
import { useMachines } from './hooks'

/** What a machine may be unable to do for its sessions, as its agent names it. */
export type Feature = 'devices' | 'guard' | 'mps' | 'nvidia' | 'mounts' | 'commit' | 'raise-priority'

/**
 * Returns why something cannot be done on a machine, empty if it can. Of several machines that a session may come to,
 * each must be unable to.
 */
export function useLacks(): (agents: string | readonly string[], feature: Feature) => string {
  const { t } = useTranslation()
  const machines = useMachines().data ?? []
  return (agents, feature) => {
    const asked = machines.filter((m) => (typeof agents === 'string' ? m.agent === agents : agents.includes(m.agent)))
    return asked.length > 0 && asked.every((m) => m.lacks?.includes(feature)) ? t(`lacks.${feature}`) : ''
  }
}
