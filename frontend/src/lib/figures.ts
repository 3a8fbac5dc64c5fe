import dayjs from 'dayjs'

/** A count in the language of the page, short from a hundred thousand on: "12,480", "1.2M". */
export function formatCount(count: number): string {
  const short = count >= 100_000 ? ({ notation: 'compact', maximumFractionDigits: 1 } as const) : {}
  return new Intl.NumberFormat(dayjs.locale(), short).format(count)
}

/** A measured value, to two decimals where it is small. */
export function formatValue(value: number): string {
  if (value >= 100_000) return formatCount(value)
  return new Intl.NumberFormat(dayjs.locale(), { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 }).format(value)
}

/** The time until the first word, rounded up: "<1 ms", "180 ms", "1.4 s". A dash: no stream was answered yet. */
export function formatFirstWord(ms: number): string {
  if (ms <= 0) return '–'
  if (ms <= 1) return '<1 ms'
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}
