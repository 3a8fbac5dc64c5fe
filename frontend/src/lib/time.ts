import dayjs from 'dayjs'
import relativeTime from 'dayjs/plugin/relativeTime'
import 'dayjs/locale/ko'
import { now as clock } from './now'

dayjs.extend(relativeTime)

/** Chooses the language of relative times. */
export function setTimeLanguage(language: string): void {
  dayjs.locale(language)
}

/** "3 minutes ago", "in 2 minutes". */
export function formatRelative(at: string | number, now: number = clock()): string {
  return dayjs(at).from(now)
}

/** A moment that has passed: it is never ahead of now, although the clocks of two machines or of a slow page are. */
export function past(at: string | number, now: number = clock()): number {
  return Math.min(dayjs(at).valueOf(), now)
}

const steps = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** The same in figures, for a narrow column: "12s ago", "3m ago". */
export function formatShortRelative(at: string | number, now: number = clock()): string {
  const seconds = Math.round((dayjs(at).valueOf() - now) / 1000)
  const [unit, size] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? steps[3]
  return new Intl.RelativeTimeFormat(dayjs.locale(), { style: 'narrow', numeric: 'auto' }).format(
    Math.trunc(seconds / size),
    unit,
  )
}

/** The exact local time, to the second. */
export function formatExact(at: string | number): string {
  return dayjs(at).format('YYYY-MM-DD HH:mm:ss')
}

/** The local day of a moment, and its name where it has one: "2026-01-02 today". */
export function dayWords(at: string | number, now: number = clock()): string {
  const day = dayjs(at)
  if (day.isSame(now, 'day')) return `${day.format('YYYY-MM-DD')} today`
  return day.isSame(dayjs(now).subtract(1, 'day'), 'day')
    ? `${day.format('YYYY-MM-DD')} yesterday`
    : day.format('YYYY-MM-DD')
}

/** A moment that matters to the minute: the time of day, with the date if it is not today. */
export function formatMoment(at: string | number, now: number = clock()): string {
  const moment = dayjs(at)
  const time = moment.second() ? 'HH:mm:ss' : 'HH:mm'
  return moment.format(moment.isSame(now, 'day') ? time : `YYYY-MM-DD ${time}`)
}

/** The time of day to the millisecond, with the date if it is not today. */
export function formatInstant(at: string | number, now: number = clock()): string {
  const moment = dayjs(at)
  return moment.format(moment.isSame(now, 'day') ? 'HH:mm:ss.SSS' : 'YYYY-MM-DD HH:mm:ss.SSS')
}

/** The time of day with seconds, for lines of a log and chart legends. */
export function formatClock(at: string | number): string {
  return dayjs(at).format('HH:mm:ss')
}

/** A length of time in its two largest units, for a narrow place: "7s", "12m 40s", "3h 04m", "2d 3h". */
export function formatElapsed(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000))
  const pad = (n: number) => String(n).padStart(2, '0')
  const minutes = Math.floor(total / 60) % 60
  const hours = Math.floor(total / 3600) % 24
  const days = Math.floor(total / 86_400)
  if (days > 0) return `${days}d ${hours}h`
  if (hours > 0) return `${hours}h ${pad(minutes)}m`
  return minutes > 0 ? `${minutes}m ${pad(total % 60)}s` : `${total}s`
}

/** A short length of time in words of units: "300 ms", "4.5 s", "45 s", "3 min 5 s", "2 h 10 min". */
export function formatSpan(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${seconds.toFixed(1).replace('.0', '')} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return whole % 60 ? `${minutes} min ${whole % 60} s` : `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`
}

const lengthUnits: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week' }

/** A length of time as the server writes it, "30d", in words: "30 days". Empty for none. */
export function formatLength(text: string): string {
  const [, count, letter] = /^(\d+)([smhdw])$/.exec(text) ?? []
  const unit = lengthUnits[letter ?? '']
  if (!unit || Number(count) === 0) return ''
  return new Intl.NumberFormat(dayjs.locale(), { style: 'unit', unit, unitDisplay: 'long' }).format(Number(count))
}
