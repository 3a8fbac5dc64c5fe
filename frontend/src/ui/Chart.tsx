import { theme } from 'antd'
import { useEffect, useRef, useState } from 'react'
import type uPlot from 'uplot'
import { seriesPalette } from './palette'
import css from './Chart.module.css'

export interface ChartSeries {
  label: string
  values: (number | null)[]
}

interface ChartProps {
  title: string
  /** Seconds since 1970, one for each value. */
  times: number[]
  series: ChartSeries[]
  format: (value: number) => string
  /** Ends of the time axis, in seconds since 1970. */
  range: [number, number]
  /** Top of the value axis. Without it the data, taken for bytes, decides. */
  max?: number
  /** Charts with one key share their cursor. */
  syncKey: string
  height?: number
  /** Values are bytes unless told otherwise: then the axis rounds in tens. */
  decimal?: boolean
}

type Plot = uPlot

/** A chart of values over time; its head reads the value under the shared cursor, else the newest. */
export function Chart(props: ChartProps) {
  const { title, times, series, format, range, max, syncKey, height = 96, decimal = false } = props
  const { token } = theme.useToken()
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  const [at, setAt] = useState<number | null>(null)
  const colours = seriesPalette(token)
  const palette = colours.join('\n')
  const live = useRef({ range, max, format, decimal })
  live.current = { range, max, format, decimal }
  const labels = series.map((s) => s.label).join('\n')
  const count = series.length
  const { colorTextTertiary: axisColour, colorBorderSecondary: gridColour } = token

  useEffect(() => {
    const element = frame.current
    if (!element) return
    let ended = false
    let made: Plot | null = null
    const observer = new ResizeObserver(() => made?.setSize({ width: element.clientWidth, height }))
    void import('./plot').then(({ makePlot }) => {
      if (ended) return
      made = makePlot(element, {
        width: element.clientWidth,
        height,
        count,
        syncKey,
        colours: { axis: axisColour, grid: gridColour, series: palette.split('\n') },
        live: () => live.current,
        onCursor: setAt,
      })
      plot.current = made
      observer.observe(element)
      element.dispatchEvent(new Event('plotready'))
    })
    return () => {
      ended = true
      observer.disconnect()
      made?.destroy()
      plot.current = null
    }
  }, [count, labels, height, syncKey, axisColour, gridColour, palette])

  useEffect(() => {
    const element = frame.current
    const draw = () => plot.current?.setData([times, ...series.map((s) => s.values)] as uPlot.AlignedData)
    draw()
    element?.addEventListener('plotready', draw)
    return () => element?.removeEventListener('plotready', draw)
  }, [times, series, range, max])

  const index = at ?? times.length - 1
  return (
    <figure className={css.chart}>
      <figcaption className={css.head}>
        <span className={css.title}>{title}</span>
        {series.map((s, i) => {
          const value = s.values[index]
          return (
            <span key={s.label} className={css.value}>
              {count > 1 ? <i className={css.swatch} style={{ background: colours[i % colours.length] }} /> : null}
              {value === null || value === undefined ? '–' : format(value)}
              {s.label ? <span className={css.label}>{s.label}</span> : null}
            </span>
          )
        })}
      </figcaption>
      <div ref={frame} style={{ height }} role="img" aria-label={title} />
    </figure>
  )
}
