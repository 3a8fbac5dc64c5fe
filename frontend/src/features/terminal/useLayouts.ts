import { useCallback, useMemo } from 'react'
import { useStored } from '@/lib/stored'
import { arrange, type Divider, type Layout, resize, shellsOf, type Side, split } from './layout'

const none: Layout[] = []

/** Whether a value that was stored is a layout. */
function isLayout(value: unknown, depth = 0): value is Layout {
  if (typeof value !== 'object' || value === null || depth > 8) return false
  const part = value as Record<string, unknown>
  if (typeof part.shell === 'string') return true
  return (
    (part.side === 'right' || part.side === 'down') &&
    typeof part.ratio === 'number' &&
    part.ratio > 0 &&
    part.ratio < 1 &&
    isLayout(part.first, depth + 1) &&
    isLayout(part.second, depth + 1)
  )
}

interface Layouts {
  tabs: Layout[]
  splitAt: (at: string, side: Side, added: string) => void
  move: (tab: Layout, path: Divider['path'], ratio: number) => void
}

/** How the shells of a session are arranged in this browser, as tabs and their panes. */
export function useLayouts(session: string, shells: readonly string[]): Layouts {
  const [stored, store] = useStored<unknown>(`panes.${session}`, none)
  const tabs = useMemo(
    () => arrange(Array.isArray(stored) ? stored.filter((one) => isLayout(one)) : none, shells),
    [stored, shells],
  )
  // A tab of one shell needs no word of it.
  const keep = useCallback((next: Layout[]) => store(next.filter((tab) => shellsOf(tab).length > 1)), [store])
  return {
    tabs,
    splitAt: (at, side, added) =>
      keep(
        split(
          [...tabs, ...(tabs.some((tab) => shellsOf(tab).includes(added)) ? [] : [{ shell: added }])],
          at,
          side,
          added,
        ),
      ),
    move: (tab, path, ratio) => keep(tabs.map((other) => (other === tab ? resize(tab, path, ratio) : other))),
  }
}
