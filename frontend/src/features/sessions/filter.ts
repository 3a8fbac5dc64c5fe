import type { Session } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { nearest } from '@/lib/nearest'
import { waitTexts } from '@/lib/phrases'
import { statuses } from '@/lib/status'
import { dayWords } from '@/lib/time'
import { dataFolders, foldersOf } from './order'

/** The title of an image's environment; empty where it is of none. */
export type TitleOf = (image: string) => string

/** Whether a session is one's own. */
export type IsMine = (session: Session) => boolean

const untitled: TitleOf = () => ''
const nobodys: IsMine = () => false

/** Finds one's own sessions in place of a name. */
const ME = '@me'

type Read = (session: Session, titleOf: TitleOf, isMine: IsMine) => string

/** The properties that a filter may name, with the texts they are looked for in. */
const properties: Record<string, Read> = {
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
  owner: (s, _, isMine) => (isMine(s) ? `${s.owner} ${ME}` : s.owner),
  tag: (s) => s.tags.join(', '),
  exit: (s) => String(s.exitCode ?? ''),
  folder: (s) => foldersOf(s),
  created: (s) => dayWords(s.createdAt),
  ended: (s) => (s.terminatedAt ? dayWords(s.terminatedAt) : ''),
  waits: (s) => (s.wait ? `${s.wait.message} ${Object.values(waitTexts(s.wait, s.agent)).join(' ')}` : ''),
}

export const filterProperties = Object.keys(properties)

const inWords = ['name', 'id', 'image', 'command'] as const
/** Of these a word must be the beginning: short ones, such as the owner "me", would be in everything. */
const begunByWords = ['agent', 'owner'] as const
const shortest = 3

type Test = (session: Session) => boolean

interface Term {
  /** As it stands in the query, and where. */
  raw: string
  at: number
  negative: boolean
  /** What is before the colon, known or not; empty in a plain word. */
  property: string
  /** In lower case, as is body, which has the property as well. */
  value: string
  body: string
}

/** Terms are parted by blanks; a minus before one turns it round, and quotes keep blanks together. */
function termsOf(query: string): Term[] {
  return [...query.matchAll(/(?:[^\s"]+|"[^"]*"?)+/g)].flatMap(({ 0: raw, index }) => {
    const text = raw.replaceAll('"', '')
    const negative = text.length > 1 && text.startsWith('-')
    const body = (negative ? text.slice(1) : text).toLowerCase()
    const colon = Math.max(0, body.indexOf(':'))
    const value = colon > 0 ? body.slice(colon + 1) : body
    return text === '' ? [] : [{ raw, at: index, negative, property: body.slice(0, colon), value, body }]
  })
}

function isWordOf(body: string, session: Session): boolean {
  return (
    inWords.some((name) => properties[name]?.(session, untitled, nobodys).toLowerCase().includes(body)) ||
    begunByWords.some((name) => {
      const text = session[name].toLowerCase()
      return text === body || (body.length >= shortest && text.startsWith(body))
    })
  )
}

function termTest({ negative, property, value, body }: Term, titleOf: TitleOf, isMine: IsMine): Test {
  const read = properties[property]
  const found: Test = read ? (s) => read(s, titleOf, isMine).toLowerCase().includes(value) : (s) => isWordOf(body, s)
  return negative ? (s) => !found(s) : found
}

/**
 * Reads a filter: terms, all of which must hold. A term is a word, or
 * property:value. An unknown property is taken as a plain word.
 */
export function parseFilter(query: string, titleOf: TitleOf = untitled, isMine: IsMine = nobodys): Test {
  const tests = termsOf(query).map((term) => termTest(term, titleOf, isMine))
  return (session) => tests.every((test) => test(session))
}

/** A term that can find nothing, since there is no such property or value. */
export interface Unknown {
  /** Empty where it is the property that there is not. */
  property: string
  word: string
  /** The word that may have been meant, and the whole filter with it. */
  meant?: { word: string; query: string }
}

/** Properties of which every value is known. */
const vocabularies: Record<string, readonly string[]> = {
  status: statuses,
  type: ['interactive', 'batch', 'inference', 'system'],
  result: ['undefined', 'success', 'failure'],
}

/** Finds the first term of a filter that names what there is not. */
export function unknownIn(
  query: string,
  sessions: readonly Session[],
  titleOf: TitleOf = untitled,
): Unknown | undefined {
  for (const term of termsOf(query)) {
    const { raw, at, negative, property, value, body } = term
    const found = (word: string, all: string): Unknown['meant'] => ({
      word,
      query: query.slice(0, at) + (negative ? '-' : '') + all + query.slice(at + raw.length),
    })
    if (property === '' || value === '') continue
    if (!properties[property]) {
      const meant = sessions.some((s) => isWordOf(body, s)) ? undefined : nearest(property, filterProperties)
      if (meant) return { property: '', word: property, meant: found(meant, `${meant}:${quoted(value)}`) }
      continue
    }
    const known = listed.find((name) => name === property)
    if (!known || value === ME) continue
    const words = vocabularies[known] ?? valuesOf(known, sessions, titleOf).map(([word]) => word)
    if (words.some((word) => word.toLowerCase().includes(value))) continue
    const near = nearest(value, words)
    const shown = near && known === 'status' ? near.toLowerCase() : near
    return { property, word: value, ...(shown ? { meant: found(shown, `${known}:${quoted(shown)}`) } : {}) }
  }
  return undefined
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
          ? dataFolders(session)
          : [properties[property]?.(session, titleOf, nobodys) ?? '']
    for (const value of values) if (value) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
}
