import type { ApiProblem } from '@/api/client'
import { SERVICE_NAME } from '@/api/rules.gen'
import type { FieldProblem } from '@/api/types.gen'
import { nameFault } from '@/lib/names'
import { messageText } from '@/lib/phrases'
import { type Draft, fill, parseEnv } from './draft'
import { ruleFault } from './rules'

/** What the form has fields for. */
export type FieldName =
  | 'name'
  | 'folder'
  | 'model'
  | 'served'
  | 'image'
  | 'command'
  | 'port'
  | 'health'
  | 'delay'
  | 'env'
  | 'agent'
  | 'replicas'
  | 'cpu'
  | 'memory'
  | 'gpu'
  | 'sleep'
  | 'rules'

export interface Fault {
  message: string
  hint?: string | undefined
}

export type Faults = Partial<Record<FieldName, Fault>>

/** The fields of a request, or how they begin, and where each is entered. */
const places: readonly [string, FieldName][] = [
  ['name', 'name'],
  ['image', 'image'],
  ['serving.command', 'command'],
  ['serving.port', 'port'],
  ['serving.models', 'served'],
  ['serving.health.initialDelay', 'delay'],
  ['serving.health', 'health'],
  ['mounts', 'folder'],
  ['env', 'env'],
  ['agent', 'agent'],
  ['group', 'agent'],
  ['replicas', 'replicas'],
  ['sleep', 'sleep'],
  ['rules', 'rules'],
  ['resources.cpu', 'cpu'],
  ['resources', 'memory'],
  ['accelerator', 'gpu'],
]

const placeOf = (field: string) =>
  places.find(([start]) => field === start || field.startsWith(`${start}.`) || field.startsWith(`${start}[`))?.[1]

/** What the agent refuses, at the fields of the form, and what belongs to none of them. */
export function refusedFields(problem: ApiProblem): { faults: Faults; rest: FieldProblem[] } {
  const faults: Faults = {}
  const rest: FieldProblem[] = []
  for (const one of problem.fields) {
    const place = placeOf(one.field)
    if (place && !faults[place]) faults[place] = { message: messageText(one), hint: one.hint }
    else if (!place) rest.push(one)
  }
  // Whose name it is, is not told as a field.
  if (problem.code === 'session_create_already-exists') {
    faults.name = { message: messageText(problem), hint: problem.hint }
  }
  return { faults, rest }
}

/** Says what is missing, in the language of the page. */
export type Say = (key: 'image' | 'quote' | 'folder' | 'model' | 'env') => string

/** What can be seen to be wrong before the agent is asked. */
export function ownFaults(draft: Draft, say: Say): Faults {
  const filled = fill(draft)
  const name = nameFault(SERVICE_NAME, draft.name)
  const modelled = draft.command === null && filled.runtime.sources.length > 0 && draft.runtime !== 'custom'
  const rule = draft.rules.map(ruleFault).find(Boolean)
  return {
    ...(name ? { name: { message: name } } : {}),
    ...(filled.image.trim() === '' ? { image: { message: say('image') } } : {}),
    ...(filled.argv === undefined ? { command: { message: say('quote') } } : {}),
    ...(modelled && draft.source === 'folder' && !draft.folder ? { folder: { message: say('folder') } } : {}),
    ...(modelled && draft.source === 'name' && !draft.model.trim() ? { model: { message: say('model') } } : {}),
    ...(parseEnv(draft.env) === undefined ? { env: { message: say('env') } } : {}),
    ...(rule ? { rules: { message: rule } } : {}),
  }
}

/** The fields in which an entry is made: a fault of the agent is over once its entry is changed. */
const entries: Partial<Record<keyof Draft, FieldName[]>> = {
  runtime: ['image', 'command', 'port', 'health', 'delay', 'folder', 'model'],
  source: ['folder', 'model'],
  path: ['folder'],
  amount: ['gpu'],
  sleeps: ['sleep'],
  agent: ['agent', 'name', 'folder', 'gpu', 'cpu', 'memory'],
}

export function without(faults: Faults, change: Partial<Draft>): Faults {
  const over = (Object.keys(change) as (keyof Draft)[]).flatMap((key) => entries[key] ?? [key as FieldName])
  return Object.fromEntries(Object.entries(faults).filter(([field]) => !over.includes(field as FieldName)))
}
