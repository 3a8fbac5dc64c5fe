/** What the look of a way to an agent is chosen by. */
export type ConnectionTone = 'good' | 'busy' | 'bad' | 'asks' | 'off'

/** The part of an agent that says how it is reached. An api Agent fits. */
interface ReachSubject {
  local: boolean
  question?: unknown
  connection: { state: string }
}

const tones: Record<string, ConnectionTone> = {
  connected: 'good',
  connecting: 'busy',
  probing: 'busy',
  down: 'bad',
  question: 'asks',
  off: 'off',
}

/** The tone of a state; one that is not known yet counts as trouble. */
export function connectionTone(state: string): ConnectionTone {
  return tones[state] ?? 'bad'
}

/** Whether what is shown of an agent is live. One that is being probed has not been given up. */
export function isReached({ connection }: ReachSubject): boolean {
  return connection.state === 'connected' || connection.state === 'probing'
}

/**
 * Whether an agent is connected only by a person, who may be asked something. One that shows another key asks that
 * first.
 */
export function needsPerson({ connection, question }: ReachSubject): boolean {
  return connection.state === 'question' && !question
}

/** The code of a machine that lets nobody in without an answer. */
export const asksCode = 'agent_connect_asks'

/** A round trip in milliseconds, short: "0.4 ms", "38 ms". */
export function formatRtt(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}
