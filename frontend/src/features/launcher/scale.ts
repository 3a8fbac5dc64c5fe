import { GIB, MIB } from './amount'

/** Marks on a slider, by its values. */
type Marks = Record<number, string>

/** A label that shows nothing and still keeps its dot. */
const blank = '\u200b'

/** The narrowest slider, in letters of its labels. */
const letters = 56

/**
 * The ends of a slider and what remains between them. Where its label would lie
 * on that of an end, the end keeps its dot: the label at the low end gives way,
 * the one at the high end says both.
 */
export function remainingMarks(
  min: number,
  max: number,
  remaining: number,
  write: (value: number) => string,
  name: string,
): Marks {
  const marks: Marks = { [min]: write(min), [max]: write(max) }
  if (remaining <= min || remaining >= max) return marks
  const text = `${name} ${write(remaining)}`
  const at = ((remaining - min) / (max - min)) * letters
  if (letters - at < text.length / 2 + write(max).length + 2) {
    marks[max] = `${text} / ${write(max)}`
    marks[remaining] = blank
    return marks
  }
  if (at < text.length / 2 + write(min).length + 1) marks[min] = blank
  marks[remaining] = text
  return marks
}

/** The stops of a slider: its ends, the powers of two between them, and what lies half-way between those. */
export function stopsOf(min: number, max: number): number[] {
  const stops = [min]
  for (let power = 2 ** Math.floor(Math.log2(min)); power < max; power *= 2) {
    for (const stop of [power, power * 1.5]) {
      if (stop > min && stop < max && Number.isInteger(stop)) stops.push(stop)
    }
  }
  return max > min ? [...stops, max] : stops
}

/** Where a value lies among stops: 1.5 is half-way from the second to the third. */
export function positionOf(stops: readonly number[], value: number): number {
  const above = stops.findIndex((stop) => stop >= value)
  if (above < 0) return stops.length - 1
  const [low = 0, high = 0] = [stops[above - 1], stops[above]]
  return above === 0 ? 0 : above - (high - value) / (high - low)
}

/** The whole value at a place among stops. */
export function valueAt(stops: readonly number[], position: number): number {
  const low = stops[Math.floor(position)] ?? 0
  const high = stops[Math.ceil(position)] ?? low
  return Math.round(low + (high - low) * (position - Math.floor(position)))
}

/** At most this many powers of two fit below a slider. */
const mostPowers = 9

/** The smallest powers of two from min to max. */
export function powersOf(min: number, max: number): number[] {
  const powers: number[] = []
  for (let power = 2 ** Math.ceil(Math.log2(min)); power <= max; power *= 2) powers.push(power)
  return powers.slice(0, mostPowers)
}

/** A step that leaves about a hundred stops on the way, in MiB. */
export function memoryStep(maxBytes: number): number {
  const stops = maxBytes / MIB / 100
  return [16, 32, 64, 128, 256, 512].find((step) => step >= stops) ?? 1024
}

/** The largest multiple of a step that fits, in MiB. */
export function memoryMax(maxBytes: number): number {
  const step = memoryStep(maxBytes)
  return Math.max(step, Math.floor(maxBytes / MIB / step) * step)
}

/** A slider's value in MiB as an amount to show: whole GiB where it is one. */
export function fromMib(mib: number): { value: number; unit: 'm' | 'g' } {
  return mib * MIB >= GIB && mib % 256 === 0 ? { value: mib / 1024, unit: 'g' } : { value: mib, unit: 'm' }
}
