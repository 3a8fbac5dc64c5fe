import i18next from 'i18next'

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
function spoken(phrase: Phrase): string | undefined {
  if (!phrase.say) return phrase.with ? joined(phrase.with, phrase.text ?? '') : (phrase.text ?? '')
  const holes: { count: number; [hole: string]: string | number } = { count: phrase.count ?? 0 }
  for (const piece of phrase.with ?? []) {
    const text = spoken(piece)
    if (text === undefined) return undefined
    holes[piece.hole ?? ''] = text
  }
  const key = `phrases:${phrase.say}` as 'phrases:anothers'
  return i18next.exists(key, holes) ? i18next.t(key, holes as { count: number }) : undefined
}

function joined(phrases: readonly Phrase[], between: string): string | undefined {
  const texts = phrases.map(spoken)
  return texts.includes(undefined) ? undefined : texts.join(between)
}

/** What is told, in the language of the page; in English where an agent says what the page has no words for. */
export function messageText({ message, said }: Told): string {
  return (said?.length ? joined(said, ' ') : undefined) ?? message ?? ''
}

/** What to do about it, in the same way; empty where nothing is advised. */
export function hintText({ hint, advice }: Told): string {
  return messageText({ message: hint, said: advice })
}
