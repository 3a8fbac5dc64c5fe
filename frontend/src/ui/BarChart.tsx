import { Tooltip } from 'antd'
import css from './BarChart.module.css'

export interface BarLayer {
  key: string
  label: string
  /** A CSS colour. */
  colour: string
  hatched?: boolean
  /** One for each bar. */
  values: readonly number[]
}

interface BarChartProps {
  label: string
  /** Names of the bars, as read on the axis. */
  bars: readonly string[]
  layers: readonly BarLayer[]
  format: (value: number) => string
  height?: number
  /** The smallest top of the axis: half of less could not be written. */
  least?: number
}

/** A top of the axis that halves well in tens. */
function niceTop(high: number): number {
  if (high <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(high))
  return ([1, 2, 4, 6, 8, 10].find((n) => n * power >= high * 1.02) ?? 10) * power
}

/** Stacked bars over one axis. Each tells on hover what it is made of. */
export function BarChart({ label, bars, layers, format, height = 180, least = 0 }: BarChartProps) {
  const sums = bars.map((_, i) => layers.reduce((sum, layer) => sum + (layer.values[i] ?? 0), 0))
  const top = niceTop(Math.max(least, ...sums))
  const every = Math.ceil(bars.length / 12)
  const detail = (i: number) => (
    <div className={css.detail}>
      <b>{bars[i]}</b>
      {layers
        .filter((layer) => (layer.values[i] ?? 0) > 0)
        .map((layer) => (
          <div key={layer.key}>
            <i className={css.swatch} style={{ background: layer.colour }} />
            <span>{layer.label}</span>
            <span className="num">{format(layer.values[i] ?? 0)}</span>
          </div>
        ))}
      <div>
        <i className={css.swatch} />
        <span>Σ</span>
        <span className="num">{format(sums[i] ?? 0)}</span>
      </div>
    </div>
  )
  return (
    <figure className={css.chart} aria-label={label}>
      <div className={css.axis} style={{ height }} aria-hidden>
        {[top, top / 2, 0].map((value) => (
          <span key={value}>{value === 0 ? '0' : format(value)}</span>
        ))}
      </div>
      <div className={css.plot}>
        <div className={css.bars} style={{ height }}>
          {bars.map((bar, i) => (
            <Tooltip key={bar} title={detail(i)} mouseEnterDelay={0} styles={{ root: { maxWidth: 360 } }}>
              <div className={css.slot} role="img" aria-label={`${bar}: ${format(sums[i] ?? 0)}`}>
                {layers.map((layer) => {
                  const share = ((layer.values[i] ?? 0) / top) * 100
                  return share > 0 ? (
                    <i
                      key={layer.key}
                      className={layer.hatched ? css.hatched : undefined}
                      style={{ height: `${share}%`, ['--part' as string]: layer.colour }}
                    />
                  ) : null
                })}
              </div>
            </Tooltip>
          ))}
        </div>
        <div className={css.names} aria-hidden>
          {bars.map((bar, i) => (
            <span key={bar}>{i % every === 0 ? bar : ''}</span>
          ))}
        </div>
      </div>
    </figure>
  )
}
