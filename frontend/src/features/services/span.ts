export const spanUnits = ['m', 'h', 'd'] as const

/** A length of time: a number and its unit. */
export interface Span {
  value: number | null
  unit: (typeof spanUnits)[number]
}

/** Reads a length of time as the server writes it: "30m". Undefined: it is none. */
export function parseSpan(text: string): Span | undefined {
  const [, value, unit] = /^(\d+)([smhdw])$/.exec(text) ?? []
  if (!value || !unit) return undefined
  if (unit === 's') return { value: Math.ceil(Number(value) / 60), unit: 'm' }
  if (unit === 'w') return { value: Number(value) * 7, unit: 'd' }
  return { value: Number(value), unit: unit as Span['unit'] }
}

export const writeSpan = ({ value, unit }: Span): string => (value ? `${value}${unit}` : '')
