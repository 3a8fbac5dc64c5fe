import { MAX_PORTS } from '../../api/rules.gen'

/** The ends of one port or range as it was typed; null when it is neither. */
function ends(token: string): [number, number] | null {
  const match = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(token.trim())
  return match ? [Number(match[1]), Number(match[2] ?? match[1])] : null
}

/** The ports that a token stands for. A long range is cut where it is too long for any session. */
function expand(token: string): number[] {
  const [from, to] = ends(token) ?? [0, -1]
  return Array.from({ length: Math.max(0, Math.min(to - from, MAX_PORTS) + 1) }, (_, i) => from + i)
}

/** Splits typed text at commas, spaces and line ends. */
export function splitPorts(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== '')
}

/** Every port that the tokens stand for, in their order; what cannot be read is left out. */
export function expandPorts(tokens: readonly string[]): number[] {
  return tokens.flatMap(expand)
}

/** Why a token stands for no ports; null when it does. */
export function portFault(token: string): 'portFormat' | 'portOrder' | null {
  const range = ends(token)
  if (!range) return 'portFormat'
  return range[1] < range[0] ? 'portOrder' : null
}

/** The index of the token that a position in the expanded list belongs to. */
export function tokenOfPort(tokens: readonly string[], position: number): number {
  let before = 0
  return tokens.findIndex((token) => {
    before += expand(token).length
    return position < before
  })
}
