export const MIB = 1024 ** 2
export const GIB = 1024 ** 3

export type AmountUnit = 'm' | 'g' | 't'
export const AMOUNT_UNITS: readonly AmountUnit[] = ['m', 'g', 't']

const FACTOR: Record<AmountUnit, number> = { m: MIB, g: GIB, t: 1024 * GIB }

/** An amount of memory as a person enters it: a number and a unit. */
export interface Amount {
  value: number | null
  unit: AmountUnit
}

/** The amount in bytes, or null where no number is entered. */
export function amountToBytes(amount: Amount): number | null {
  return amount.value === null ? null : Math.round(amount.value * FACTOR[amount.unit])
}

/** Bytes in the largest unit that needs at most two decimals. */
export function amountFromBytes(bytes: number): Amount {
  for (const unit of ['t', 'g'] as const) {
    const value = bytes / FACTOR[unit]
    if (value >= 1 && Math.abs(Math.round(value * 100) - value * 100) < 1e-9) return { value, unit }
  }
  return { value: Math.round((bytes / MIB) * 100) / 100, unit: 'm' }
}

/** The same amount in another unit. */
export function convertAmount(amount: Amount, unit: AmountUnit): Amount {
  const bytes = amountToBytes(amount)
  return { value: bytes === null ? null : Math.round((bytes / FACTOR[unit]) * 1e4) / 1e4, unit }
}

/** Writes an amount as "1.5g"; "" when there is no number. */
export function writeAmount(amount: Amount): string {
  return amount.value === null ? amount.unit : `${amount.value}${amount.unit}`
}

/** Reads what writeAmount writes; null when it is anything else. */
export function parseAmount(text: string): Amount | null {
  const match = /^(\d+(?:\.\d+)?)?([mgt])$/.exec(text)
  if (!match) return null
  return { value: match[1] === undefined ? null : Number(match[1]), unit: match[2] as AmountUnit }
}
