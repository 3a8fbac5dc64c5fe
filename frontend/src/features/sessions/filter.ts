import type { Session } from '@/api/types.gen'

/** The properties that a filter may name, with the texts they are looked for in. */
const properties: Record<string, (session: Session) => string> = {
  name: (s) => s.name,
  id: (s) => s.id,
  status: (s) => s.status,
  type: (s) => s.type,
  image: (s) => s.image,
  agent: (s) => s.agent,
  result: (s) => s.result,
  reason: (s) => s.reason,
  command: (s) => s.spec.command ?? '',
  gpu: (s) => s.accelerator?.text ?? '',
  label: (s) => s.spec.label ?? '',
  owner: (s) => s.owner,
  waits: (s) => s.wait?.message ?? '',
}

export const filterProperties = Object.keys(properties)

const inWords = ['name', 'id', 'image', 'command'] as const

type Test = (session: Session) => boolean

function termTest(term: string): Test {
  const negative = term.length > 1 && term.startsWith('-')
  const body = (negative ? term.slice(1) : term).toLowerCase()
  const colon = body.indexOf(':')
  const property = colon > 0 ? properties[body.slice(0, colon)] : undefined
  const found: Test = property
    ? (s) => property(s).toLowerCase().includes(body.slice(colon + 1))
    : (s) => inWords.some((name) => properties[name]?.(s).toLowerCase().includes(body))
  return negative ? (s) => !found(s) : found
}

/**
 * Reads a filter: terms parted by blanks, all of which must hold. A term is a
 * word, or property:value; a minus before it turns it round; quotes keep
 * blanks together. An unknown property is taken as a plain word.
 */
export function parseFilter(query: string): Test {
  const terms = (query.match(/(?:[^\s"]+|"[^"]*"?)+/g) ?? []).map((t) => t.replaceAll('"', '')).filter((t) => t !== '')
  const tests = terms.map(termTest)
  return (session) => tests.every((test) => test(session))
}
