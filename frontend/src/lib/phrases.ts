import i18next from 'i18next'
import { formatMoment } from './time'

/** A sentence or a piece of one that can be said in any language. An api Phrase fits. */
export interface Phrase {
  hole?: string
  say?: string
  count?: number
  text?: string
  with?: Phrase[]
}

/** What an agent says of why something is as it is. An api Wait, Problem, Phase or Step fits. */
export interface Told {
  /** In English. */
  message?: string
  said?: Phrase[]
  /** What to do about it, in English. */
  hint?: string
  advice?: Phrase[]
}

/** One phrase in the language of the page; undefined where it has no words for it. */
function spoken(phrase: Phrase, machine: string | undefined): string | undefined {
  if (phrase.say === 'moment') return formatMoment(phrase.text ?? '')
  if (!phrase.say) {
    if (phrase.hole === 'machine' && machine) return machine
    return phrase.with ? joined(phrase.with, phrase.text ?? '', machine) : (phrase.text ?? '')
  }
  const holes: { count: number; [hole: string]: string | number } = { count: phrase.count ?? 0 }
  for (const piece of phrase.with ?? []) {
    const text = spoken(piece, machine)
    if (text === undefined) return undefined
    holes[piece.hole ?? ''] = text
  }
  const key = `phrases:${phrase.say}` as 'phrases:anothers'
  return i18next.exists(key, holes) ? i18next.t(key, holes as { count: number }) : undefined
}

function joined(phrases: readonly Phrase[], between: string, machine?: string): string | undefined {
  const texts = phrases.map((phrase) => spoken(phrase, machine))
  return texts.includes(undefined) ? undefined : texts.join(between)
}

/** What is told, in the language of the page; in English where an agent says what the page has no words for. */
export function messageText({ message, said }: Told): string {
  return (said?.length ? joined(said, ' ') : undefined) ?? message ?? ''
}

/** Why a service or a replica is in its state. An api Service or Replica fits. */
export function whyText({ why, said }: { why?: string; said?: Phrase[] }): string {
  return messageText({ message: why ?? '', said: said ?? [] })
}

/** Why a session waits. An api Wait fits. */
export interface Waits extends Told {
  details?: Phrase[]
  estimate?: Phrase
}

/**
 * Why a session waits: what it needs and who frees it, and the details. All of it is the former where the page lacks
 * words. The machine is named as the page knows it.
 */
export function waitTexts(wait: Waits, machine: string | undefined): { lead: string; details: string } {
  const lead = wait.said?.length ? joined(wait.said, ' ', machine) : undefined
  const details = joined(wait.details ?? [], ' ', machine)
  if (lead === undefined || details === undefined) return { lead: wait.message ?? '', details: '' }
  return { lead, details }
}

/** When a session that waits starts: "about 12:40 (± 13 min, from 6 earlier runs)", or that this is unknown. */
export function estimateText({ estimate }: Waits): string {
  const unknown = { say: 'estimateUnknown' }
  return spoken(estimate ?? unknown, undefined) ?? spoken(unknown, undefined) ?? ''
}

/** What to do about it, in the same way; empty where nothing is advised. */
export function hintText({ hint, advice }: Told): string {
  return messageText({ message: hint, said: advice })
}
