const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

interface Amount {
  value: string
  unit: string
}

/** Splits an amount of bytes into a number of at most three digits before the point and its binary unit. */
export function splitBytes(bytes: number): Amount {
  let value = Math.abs(bytes)
  let unit = 0
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
  const fixed = value.toFixed(digits)
  const text = fixed.includes('.') ? fixed.replace(/\.?0+$/, '') : fixed
  return { value: bytes < 0 ? `-${text}` : text, unit: units[unit] ?? 'B' }
}

/** Writes bytes with a binary unit: "1.5 GiB". */
export function formatBytes(bytes: number): string {
  const { value, unit } = splitBytes(bytes)
  return `${value} ${unit}`
}

/** Writes bytes a second: "12.4 MiB/s". */
export function formatRate(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond)}/s`
}

const suffixes: Record<string, number> = { '': 1, b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 }

/** Reads an amount such as "512m", "1.5g" or "64 MiB"; undefined if it is none. */
export function parseBytes(text: string | number | undefined): number | undefined {
  if (typeof text === 'number') return text
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*$/i.exec(text ?? '')
  if (!match) return undefined
  const scale = suffixes[(match[2] ?? '').toLowerCase()]
  return scale === undefined ? undefined : Math.round(Number(match[1]) * scale)
}

/** Writes bytes the way the command line takes them: the largest unit that loses nothing, "512m". */
export function shortBytes(bytes: number): string {
  for (const suffix of ['t', 'g', 'm', 'k'] as const) {
    const scale = suffixes[suffix]
    if (scale && bytes > 0 && bytes % scale === 0) return `${bytes / scale}${suffix}`
  }
  return String(bytes)
}
