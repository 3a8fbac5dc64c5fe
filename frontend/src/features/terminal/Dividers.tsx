import type { KeyboardEvent, PointerEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { type Divider, dividersOf, type Layout } from './layout'
import css from './terminal.module.css'

interface DividersProps {
  layout: Layout
  onMove: (path: Divider['path'], ratio: number) => void
}

const percent = (part: number) => `${part * 100}%`

/** The lines between panes: dragged with the pointer, moved with the arrow keys. */
export function Dividers({ layout, onMove }: DividersProps) {
  return dividersOf(layout).map((divider) => (
    <Line key={divider.path.join(' ') || 'root'} divider={divider} onMove={(ratio) => onMove(divider.path, ratio)} />
  ))
}

function Line({ divider, onMove }: { divider: Divider; onMove: (ratio: number) => void }) {
  const { t } = useTranslation('terminal')
  const { box, side, ratio } = divider
  const across = side === 'right'
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return
    const place = event.currentTarget.parentElement?.getBoundingClientRect()
    if (!place) return
    const at = across ? (event.clientX - place.left) / place.width : (event.clientY - place.top) / place.height
    onMove(across ? (at - box.left) / box.width : (at - box.top) / box.height)
  }
  const press = (event: KeyboardEvent) => {
    const [less, more] = across ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown']
    if (event.key !== less && event.key !== more) return
    event.preventDefault()
    onMove(ratio + (event.key === more ? 0.05 : -0.05))
  }
  const style = across
    ? { left: percent(box.left + box.width * ratio), top: percent(box.top), height: percent(box.height) }
    : { top: percent(box.top + box.height * ratio), left: percent(box.left), width: percent(box.width) }
  return (
    <div
      role="separator"
      tabIndex={0}
      aria-label={t('divider')}
      aria-orientation={across ? 'vertical' : 'horizontal'}
      aria-valuemin={10}
      aria-valuemax={90}
      aria-valuenow={Math.round(ratio * 100)}
      className={across ? css.dividerAcross : css.dividerDown}
      style={style}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={press}
    />
  )
}
