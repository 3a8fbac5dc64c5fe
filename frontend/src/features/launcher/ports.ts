export const MIN_PORT = 1024
export const MAX_PORT = 65535
export const MAX_PORTS = 10

export type PortFault = 'format' | 'range' | 'order' | 'duplicate' | 'count'

/** One port or range as it was typed, and the ports it stands for; none when it is not one. */
function parse(token: string): number[] | null {
  const match = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(token.trim())
  if (!match) return null
  const from = Number(match[1])
  const to = match[2] === undefined ? from : Number(match[2])
  if (to < from || to > MAX_PORT || from < MIN_PORT || to - from >= 1000) return []
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

/** Splits typed text at commas, spaces and line ends. */
export function splitPorts(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== '')
}

/** Every port that the tokens stand for, in their order; what cannot be read is left out. */
export function expandPorts(tokens: readonly string[]): number[] {
  return tokens.flatMap((token) => parse(token) ?? [])
}

/** What is wrong with each token, by its index; tokens without fault are absent. */
export function portFaults(tokens: readonly string[]): Map<number, PortFault> {
  const faults = new Map<number, PortFault>()
  const seen = new Set<number>()
  let count = 0
  tokens.forEach((token, index) => {
    const fault = faultOf(token, seen)
    if (fault) faults.set(index, fault)
    const ports = parse(token) ?? []
    count += ports.length
    ports.forEach((port) => seen.add(port))
    if (!fault && count > MAX_PORTS) faults.set(index, 'count')
  })
  return faults
}

function faultOf(token: string, seen: ReadonlySet<number>): PortFault | null {
  const ports = parse(token)
  if (ports === null) return 'format'
  const [from, to] = token.split(':').map(Number)
  if (from !== undefined && to !== undefined && to < from) return 'order'
  if (from !== undefined && (from < MIN_PORT || (to ?? from) > MAX_PORT)) return 'range'
  if (ports.length === 0) return 'count'
  return ports.some((port) => seen.has(port)) ? 'duplicate' : null
}

/** The index of the token that a position in the expanded list belongs to. */
export function tokenOfPort(tokens: readonly string[], position: number): number {
  let before = 0
  for (let i = 0; i < tokens.length; i += 1) {
    before += (parse(tokens[i] ?? '') ?? []).length
    if (position < before) return i
  }
  return -1
}
