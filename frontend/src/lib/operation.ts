/** A long piece of work as it is shown. An api Operation fits. */
export interface OperationSubject {
  id: string
  kind: string
  subject: string
  state: string
  steps: readonly StepSubject[]
  progress?: ProgressSubject
  prompt?: PromptSubject
  error?: { code: string; message: string; hint?: string }
  agent?: string
  image?: string
  log?: string
}

export interface StepSubject {
  name: string
  title: string
  state: string
  detail?: string
  remedy?: string
}

export interface ProgressSubject {
  done: number
  total: number
  rate: number
  left?: number
}

export interface PromptSubject {
  id: string
  kind: string
  text: string
  secret: boolean
  again: boolean
  fingerprint?: string
  host?: string
  /** What this and that are, of which to keep one or both. */
  sides?: readonly string[]
  remaining?: number
}

/** Whether an operation has not ended yet. */
export function isRunning({ state }: { state: string }): boolean {
  return state === 'running' || state === 'waiting'
}
