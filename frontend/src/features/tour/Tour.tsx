import { Tour as AntTour } from 'antd'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { useStored } from '@/lib/stored'
import type { Step } from './steps'
import { useAnchor } from './useAnchor'

/** Class of what the tour draws. */
const mark = 'slipway-tour'

export interface TourProps {
  steps: readonly Step[]
  /** Goes to the page of a step. */
  onVisit: (path: string) => void
  onClose: () => void
}

/**
 * The guided tour. It goes on where it was left; Esc, its cross and a click into the dark leave it, the arrow keys go
 * on and back.
 */
export function Tour({ steps, onVisit, onClose }: TourProps) {
  const { t } = useTranslation('tour')
  const [at, setAt] = useStored('tour', 0)
  const current = at < steps.length ? at : 0
  const step = steps[current]
  const anchor = useAnchor(step?.anchor ?? '', current)
  const path = step?.path
  useEffect(() => {
    if (path) onVisit(path)
  }, [path, onVisit])
  useEffect(() => {
    if (anchor === undefined) return
    // The panel is drawn after its place is known.
    const frame = requestAnimationFrame(() =>
      document.querySelector<HTMLElement>(`.${mark} .ant-tour-actions button:last-child`)?.focus(),
    )
    // What is still being loaded grows: the light follows it, as it follows the window.
    const grown = new ResizeObserver(() => window.dispatchEvent(new Event('resize')))
    if (anchor) grown.observe(anchor)
    return () => {
      cancelAnimationFrame(frame)
      grown.disconnect()
    }
  }, [anchor])
  useEffect(() => {
    const leave = ({ target }: MouseEvent) => {
      if (target instanceof Element && target.closest(`.${mark}.ant-tour-mask`)) onClose()
    }
    document.addEventListener('click', leave)
    return () => document.removeEventListener('click', leave)
  }, [onClose])
  return (
    <AntTour
      open={anchor !== undefined}
      current={current}
      rootClassName={mark}
      steps={steps.map(({ name, placement }) => ({
        ...(placement ? { placement } : {}),
        title: t(`${name}.title`),
        description: t(`${name}.text`),
        target: anchor ?? null,
        closable: { 'aria-label': t('leave') },
      }))}
      indicatorsRender={(n, total) => <span className="num">{t('place', { at: n + 1, total })}</span>}
      scrollIntoViewOptions={{ block: 'nearest', inline: 'nearest' }}
      onChange={setAt}
      onClose={onClose}
      onFinish={() => setAt(0)}
    />
  )
}
