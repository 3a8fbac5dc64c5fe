import type { Session } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { messageText } from '@/lib/phrases'
import { foldersOf } from './order'

/** The title of an image's environment; empty where it is of none. */
export type TitleOf = (image: string) => string

const untitled: TitleOf = () => ''

/** The properties that a filter may name, with the texts they are looked for in. */
const properties: Record<string, (session: Session, titleOf: TitleOf) => string> = {
  name: (s) => s.name,
  id: (s) => s.id,
  status: (s) => s.status,
  type: (s) => s.type,
  image: (s) => s.image,
  environment: (s, titleOf) => titleOf(s.image),
  agent: (s) => s.agent,
  result: (s) => s.result,
  reason: (s) => s.reason,
  command: (s) => s.spec.command ?? '',
  gpu: (s) => requestText(s.spec.accelerator),
  label: (s) => s.spec.label ?? '',
  owner: (s) => s.owner,
  tag: (s) => s.tags.join(', '),
  exit: (s) => String(s.exitCode ?? ''),
  folder: (s) => foldersOf(s),
  waits: (s) => (s.wait ? `${s.wait.message} ${messageText(s.wait)}` : ''),
}

export const filterProperties = Object.keys(properties)

const inWords = ['name', 'id', 'image', 'command'] as const

type Test = (session: Session) => boolean

function termTest(term: string, titleOf: TitleOf): Test {
  const negative = term.length > 1 && term.startsWith('-')
  const body = (negative ? term.slice(1) : term).toLowerCase()
  const colon = body.indexOf(':')
  const property = colon > 0 ? properties[body.slice(0, colon)] : undefined
  const found: Test = property
    ? (s) =>
        property(s, titleOf)
          .toLowerCase()
          .includes(body.slice(colon + 1))
    : (s) => inWords.some((name) => properties[name]?.(s, titleOf).toLowerCase().includes(body))
  return negative ? (s) => !found(s) : found
}

/**
 * Reads a filter: terms parted by blanks, all of which must hold. A term is a
 * word, or property:value; a minus before it turns it round; quotes keep
 * blanks together. An unknown property is taken as a plain word.
 */
export function parseFilter(query: string, titleOf: TitleOf = untitled): Test {
  const terms = (query.match(/(?:[^\s"]+|"[^"]*"?)+/g) ?? []).map((t) => t.replaceAll('"', '')).filter((t) => t !== '')
  const tests = terms.map((term) => termTest(term, titleOf))
  return (session) => tests.every((test) => test(session))
}

interface Suggestion {
  /** The whole filter after it was taken. */
  query: string
  /** The term that it writes. */
  term: string
  /** How many sessions the term finds; absent for a property whose value is still to be written. */
  count?: number
}

/** Properties whose values are few enough to be offered. */
const listed = [
  'status',
  'type',
  'image',
  'environment',
  'agent',
  'tag',
  'label',
  'owner',
  'result',
  'reason',
  'gpu',
  'name',
  'folder',
] as const
const suggestionsMost = 9

const quoted = (text: string) => (/\s/.test(text) ? `"${text}"` : text)

/** What one may mean by the last term of a filter: a property, then its values with how many sessions have each. */
export function suggest(query: string, sessions: readonly Session[], titleOf: TitleOf = untitled): Suggestion[] {
  const at = query.search(/(?:[^\s"]|"[^"]*"?)*$/)
  const before = query.slice(0, at)
  const negative = query[at] === '-' ? '-' : ''
  const last = query
    .slice(at + negative.length)
    .replaceAll('"', '')
    .toLowerCase()
  const colon = last.indexOf(':')
  if (colon < 0) {
    return filterProperties
      .filter((name) => name.startsWith(last))
      .slice(0, suggestionsMost)
      .map((name) => ({ query: `${before}${negative}${name}:`, term: `${negative}${name}:` }))
  }
  const property = listed.find((name) => name === last.slice(0, colon))
  if (!property) return []
  return valuesOf(property, sessions, titleOf)
    .filter(([value]) => value.toLowerCase().includes(last.slice(colon + 1)))
    .slice(0, suggestionsMost)
    .map(([value, count]) => {
      const term = `${negative}${property}:${quoted(property === 'status' ? value.toLowerCase() : value)}`
      return { query: `${before}${term} `, term, count }
    })
}

/** The values of a property, the most frequent first. */
function valuesOf(
  property: (typeof listed)[number],
  sessions: readonly Session[],
  titleOf: TitleOf,
): [string, number][] {
  const counts = new Map<string, number>()
  for (const session of sessions) {
    const values =
      property === 'tag'
        ? session.tags
        : property === 'folder'
          ? session.folders.map((f) => f.name)
          : [properties[property]?.(session, titleOf) ?? '']
    for (const value of values) if (value) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
}
