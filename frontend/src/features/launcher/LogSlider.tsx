import { Slider } from 'antd'
import { useTranslation } from 'react-i18next'
import css from './launcher.module.css'
import { positionOf, powersOf, remainingMarks, stopsOf, valueAt } from './scale'

interface LogSliderProps {
  label: string
  /** What the chips are amounts of; undefined: there are none. */
  chips?: string
  /** The smallest of them. */
  chipsFrom?: number
  min: number
  max: number
  value: number
  /** How much is free; undefined: it is not marked. */
  remaining?: number
  write: (value: number) => string
  onChange: (value: number) => void
}

/**
 * A slider each of whose steps is about half as much again as the one before, so that small amounts have room, too.
 * Below it are the usual amounts, powers of two, each with one click.
 */
export function LogSlider({
  label,
  chips,
  chipsFrom,
  min,
  max,
  value,
  remaining = max,
  write,
  onChange,
}: LogSliderProps) {
  const { t } = useTranslation('launcher')
  const stops = stopsOf(min, max)
  const last = stops.length - 1
  const writeAt = (at: number | undefined) => write(valueAt(stops, at ?? 0))
  const amounts = chips === undefined ? [] : powersOf(chipsFrom ?? min, max)
  return (
    <div>
      <Slider
        ariaLabelForHandle={label}
        ariaValueTextFormatterForHandle={writeAt}
        min={0}
        max={last}
        value={positionOf(stops, value)}
        marks={remainingMarks(0, last, positionOf(stops, remaining), writeAt, t('resources.free'))}
        tooltip={{ formatter: writeAt }}
        onChange={(at) => onChange(valueAt(stops, at))}
      />
      {amounts.length > 1 ? (
        <div className={css.chips} role="group" aria-label={chips}>
          {amounts.map((amount) => (
            <button
              key={amount}
              type="button"
              className={css.chip}
              aria-pressed={amount === value}
              onClick={() => onChange(amount)}
            >
              {write(amount)}
            </button>
          ))}
        </div>
      ) : null}
    </div>
  )
}
