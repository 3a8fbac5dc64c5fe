/** How a word ends for the particle behind it: open with a vowel, with ㄹ, or closed with another consonant. */
type Ending = 'open' | 'rieul' | 'closed'

/** A particle as texts write it where a name comes before it, and as it is behind each ending. */
const particles: Record<string, Record<Ending, string>> = {
  '이(가)': { open: '가', rieul: '이', closed: '이' },
  '을(를)': { open: '를', rieul: '을', closed: '을' },
  '은(는)': { open: '는', rieul: '은', closed: '은' },
  '와(과)': { open: '와', rieul: '과', closed: '과' },
  '(이)라는': { open: '라는', rieul: '이라는', closed: '이라는' },
  '(으)로': { open: '로', rieul: '로', closed: '으로' },
}
const written = /이\(가\)|을\(를\)|은\(는\)|와\(과\)|\(이\)라는|\(으\)로/g

/** 영, 일, 이, 삼, 사, 오, 육, 칠, 팔, 구; what ends with more zeros (십, 백, 천, 만) is closed too. */
const digits: Ending[] = ['closed', 'rieul', 'open', 'closed', 'open', 'open', 'closed', 'rieul', 'rieul', 'open']

/** How letters end that are read one by one; all others are open. */
const letters: Record<string, Ending> = { L: 'rieul', M: 'closed', N: 'closed', R: 'rieul' }

/**
 * How words of Latin letters end by their last ones, as far as that is sure: of set (셋) and test (테스트) only people
 * know.
 */
const words: [RegExp, Ending][] = [
  [/^[a-z]*[KMGTPE]i?B$|(^|[^a-z])B$/, 'open'], // bytes
  [/[adfhijosuvwxyz]$/i, 'open'],
  [/r$/i, 'open'],
  [/l$/i, 'rieul'],
  [/([mn]|ng)$/i, 'closed'],
]

/** How text ends when it is read; undefined where nobody can tell. */
function endingOf(text: string): Ending | undefined {
  // Tags and quotes are silent, and so is what stands in brackets behind a word.
  const word = text.normalize('NFC').replace(/(<[^<>]*>|["'`”’»」』]|\s*\([^()]*\))+$/u, '')
  const last = word.at(-1) ?? ''
  if (last >= '가' && last <= '힣') {
    const batchim = (last.charCodeAt(0) - 0xac00) % 28
    return batchim === 0 ? 'open' : batchim === 8 ? 'rieul' : 'closed'
  }
  if (last >= '0' && last <= '9') return digits[Number(last)]
  if (last === '%') return 'open'
  const latin = /[A-Za-z]+$/.exec(word)?.[0] ?? ''
  if (latin.length === 1 || /^[A-Z]{2,3}$/.test(latin)) return letters[latin.slice(-1).toUpperCase()] ?? 'open'
  return words.find(([end]) => end.test(latin))?.[1]
}

/**
 * Chooses each particle of a Korean text by how the word before it is read; what cannot be told stays written both
 * ways.
 */
export function withParticles(text: string): string {
  return text.replace(written, (particle, at: number) => {
    const ending = endingOf(text.slice(0, at))
    return ending ? (particles[particle]?.[ending] ?? particle) : particle
  })
}
