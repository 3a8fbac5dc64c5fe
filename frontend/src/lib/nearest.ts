/** How many letters are added, removed, changed or exchanged with their neighbour from one word to the other. */
function distance(a: string, b: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, i) => i)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same)
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      row.push(least)
    }
    ;[before, last] = [last, row]
  }
  return last[b.length] ?? 0
}

/** The word that somebody most likely meant, whatever its case; undefined where none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const asked = word.toLowerCase()
  const most = Math.min(2, Math.floor(asked.length / 2))
  const near = words
    .map((one) => ({ one, far: distance(asked, one.toLowerCase()) }))
    .filter(({ far }) => far <= most)
    .toSorted((a, b) => a.far - b.far)
  return near[0]?.one
}
