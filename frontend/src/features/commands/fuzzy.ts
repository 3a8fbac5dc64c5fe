/** Worth of each kind of hit. */
const worth = { start: 8, word: 6, run: 4, any: 1 } as const

const isBoundary = (before: string | undefined): boolean => before === undefined || /[\s\-_./:,]/.test(before)

/**
 * How well a query fits a text: the letters of the query must come in the text
 * in their order. A hit at the beginning of the text or of a word counts most,
 * then one that follows the hit before; undefined: it does not fit.
 */
export function fuzzyScore(query: string, text: string): number | undefined {
  const wanted = [...query.toLowerCase().replace(/\s+/g, '')]
  const letters = [...text.toLowerCase()]
  if (wanted.length === 0) return 0
  // best[i]: the best score that ends with the hit of the current letter at i.
  let best: (number | undefined)[] = letters.map((letter, i) =>
    letter === wanted[0] ? hit(letters, i, false) : undefined,
  )
  for (const letter of wanted.slice(1)) {
    let before: number | undefined // the best that ended at least two places earlier
    best = letters.map((at, i) => {
      const previous = best[i - 1]
      const older = before
      before = max(before, previous)
      if (at !== letter) return undefined
      return max(
        previous === undefined ? undefined : previous + hit(letters, i, true),
        older === undefined ? undefined : older + hit(letters, i, false),
      )
    })
  }
  const score = best.reduce<number | undefined>(max, undefined)
  // Of two equal fits the shorter text is the closer one.
  return score === undefined ? undefined : score - letters.length / 1000
}

function hit(letters: string[], i: number, follows: boolean): number {
  const place = i === 0 ? worth.start : isBoundary(letters[i - 1]) ? worth.word : worth.any
  return follows ? Math.max(place, worth.run) : place
}

function max(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.max(a, b)
}

/** Those whose words fit the query, best first; all of them in their order for an empty one. */
export function fuzzySort<T>(query: string, items: readonly T[], words: (item: T) => string): T[] {
  if (query.trim() === '') return [...items]
  return items
    .map((item, place) => ({ item, place, score: fuzzyScore(query, words(item)) }))
    .filter((scored): scored is typeof scored & { score: number } => scored.score !== undefined)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .map(({ item }) => item)
}
