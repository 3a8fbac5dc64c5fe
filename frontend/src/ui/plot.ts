import 'uplot/dist/uPlot.min.css'
import uPlot from 'uplot'
import { formatClock } from '@/lib/time'

interface PlotConfig {
  width: number
  height: number
  count: number
  syncKey: string
  colours: { axis: string; grid: string; series: string[] }
  /** What may change without a new plot. */
  live: () => {
    range: [number, number]
    max?: number | undefined
    decimal?: boolean
    format: (value: number) => string
  }
  /** Called with the index under the cursor, or null when it leaves. */
  onCursor: (index: number | null) => void
}

const axisFont = "10px 'Inter Variable', sans-serif"

/** Half the width of a time of day on the axis, in CSS pixels. */
const labelHalf = 16

/**
 * Whether a label has room at a time, in seconds, between the ends of the axis: neither cut nor over the value axis's
 * zero.
 */
function isClear(plot: uPlot, at: number): boolean {
  const x = plot.valToPos(at, 'x')
  return x >= labelHalf - 2 && x <= plot.over.clientWidth - labelHalf + 2
}

/** The lines of a value axis: bottom, middle and top. */
function ticks(max: number): number[] {
  return max > 0 ? [0, max / 2, max] : [0]
}

/** A top of the axis that halves well in binary units: the next power of two, from 1 KiB up. */
function niceTop(high: number): number {
  return Math.max(1024, 2 ** Math.ceil(Math.log2(Math.max(1, high * 1.02))))
}

/** A top of the axis that halves well in tens: 1, 2, 4, 5, 8 or 10 times a power of ten. */
function niceDecimalTop(high: number): number {
  const wanted = Math.max(1, high * 1.05)
  const power = 10 ** Math.floor(Math.log10(wanted))
  return ([1, 2, 4, 5, 8, 10].find((n) => n * power >= wanted) ?? 10) * power
}

/** Draws an empty plot into an element. The caller owns it and destroys it. */
export function makePlot(element: HTMLElement, config: PlotConfig): uPlot {
  const { colours } = config
  const line = (i: number): uPlot.Series => ({
    stroke: colours.series[i % colours.series.length] ?? colours.axis,
    width: 1.5,
    fill: i === 0 && config.count <= 2 ? `${colours.series[0]}1f` : undefined,
    points: { show: false },
  })
  const options: uPlot.Options = {
    width: config.width,
    height: config.height,
    padding: [6, 2, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: config.syncKey, setSeries: false },
      drag: { x: false, y: false },
      y: false,
      points: { size: 6, width: 1.5 },
    },
    scales: {
      x: { time: true, range: () => config.live().range },
      y: {
        range: (_plot, _low, high) => {
          const { max, decimal } = config.live()
          return [0, max ?? (decimal ? niceDecimalTop(high) : niceTop(high))]
        },
      },
    },
    axes: [
      {
        stroke: colours.axis,
        font: axisFont,
        size: 20,
        gap: 3,
        grid: { show: false },
        ticks: { show: false },
        space: 70,
        // A label that would be cut off by an end of the axis is left out.
        values: (plot, splits) => splits.map((s) => (isClear(plot, s) ? formatClock(s * 1000).slice(0, 5) : '')),
      },
      {
        stroke: colours.axis,
        font: axisFont,
        size: 54,
        gap: 4,
        grid: { stroke: colours.grid, width: 1 },
        ticks: { show: false },
        splits: (plot) => ticks(plot.scales.y?.max ?? 0),
        // Before there is any value, an axis without a top of its own has nothing to say.
        values: (plot, splits) => {
          const { max, format } = config.live()
          const known = max !== undefined || plot.data[0].length > 0
          return splits.map((s) => (s === 0 ? '0' : known ? format(s) : ''))
        },
      },
    ],
    series: [{}, ...Array.from({ length: config.count }, (_, i) => line(i))],
    hooks: { setCursor: [(plot) => config.onCursor(plot.cursor.idx ?? null)] },
  }
  return new uPlot(options, [[], ...Array.from({ length: config.count }, () => [])] as uPlot.AlignedData, element)
}
