// What the states of services and their replicas say.

export type Tone = 'good' | 'part' | 'bad' | 'busy' | 'off'

const tones: Record<string, Tone> = {
  READY: 'good',
  DEGRADED: 'part',
  UPDATING: 'part',
  UNREACHABLE: 'bad',
  FAILED: 'bad',
  DEPLOYING: 'busy',
  STOPPING: 'off',
  ASLEEP: 'off',
  STOPPED: 'off',
}

/** The tone of a state; one that a newer agent invents counts as off, since nothing is known of it. */
export function toneOf(state: string): Tone {
  return tones[state] ?? 'off'
}

const replicaTones: Record<string, Tone> = {
  waiting: 'part',
  warming: 'busy',
  healthy: 'good',
  unhealthy: 'bad',
  draining: 'off',
  ended: 'off',
}

export function replicaTone(state: string): Tone {
  return replicaTones[state] ?? 'off'
}

/** Whether a service answers requests now. */
export function answers({ state }: { state: string }): boolean {
  return state === 'READY' || state === 'DEGRADED' || state === 'UPDATING'
}
