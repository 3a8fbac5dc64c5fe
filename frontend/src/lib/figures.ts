import dayjs from 'dayjs'

/** A count in the language of the page, short from a hundred thousand on: "12,480", "1.2M". */
export function formatCount(count: number): string {
  const short = count >= 100_000 ? ({ notation: 'compact', maximumFractionDigits: 1 } as const) : {}
  return new Intl.NumberFormat(dayjs.locale(), short).format(count)
}

/** The time until the first word: "180 ms", "1.4 s". A dash: no stream was answered yet. */
export function formatFirstWord(ms: number): string {
  if (ms <= 0) return '–'
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}
