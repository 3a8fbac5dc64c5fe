import type { ServiceUsage } from '@/api/types.gen'
import type { Figure } from './services'
import css from './usage.module.css'

/** The text of a figure, or a dash where there is nothing. */
export function FigureText({ figure, usage }: { figure: Figure; usage: ServiceUsage }) {
  if (figure.value(usage) === 0) return <span className={css.dim}>–</span>
  return <span className={figure.key === 'failed' ? css.bad : undefined}>{figure.text(usage)}</span>
}
