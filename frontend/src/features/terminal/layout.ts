/** How the shells of one tab share its place: one of them, or two parts side by side or one above the other. */
export type Layout = { shell: string } | { side: Side; ratio: number; first: Layout; second: Layout }

/** Where a new pane comes to stand. */
export type Side = 'right' | 'down'

/** A part of the tab's place, in fractions of it. */
export interface Box {
  left: number
  top: number
  width: number
  height: number
}

export interface Divider {
  /** Steps from the root to the parts that it divides. */
  path: readonly ('first' | 'second')[]
  side: Side
  ratio: number
  /** The place that its two parts share. */
  box: Box
}

/** No pane is made smaller than this part of what it shares. */
const LEAST = 0.1

export const shellsOf = (layout: Layout): string[] =>
  'shell' in layout ? [layout.shell] : [...shellsOf(layout.first), ...shellsOf(layout.second)]

/** The layout without the shells that keep refuses, whose place goes to their neighbours; null when none is left. */
export function prune(layout: Layout, keep: (shell: string) => boolean): Layout | null {
  if ('shell' in layout) return keep(layout.shell) ? layout : null
  const first = prune(layout.first, keep)
  const second = prune(layout.second, keep)
  if (!first || !second) return first ?? second
  return first === layout.first && second === layout.second ? layout : { ...layout, first, second }
}

/** The tabs for the shells that there are: those that stand nowhere yet get a tab of their own. */
export function arrange(tabs: readonly Layout[], shells: readonly string[]): Layout[] {
  const seen = new Set<string>()
  const there = new Set(shells)
  const kept = tabs.flatMap(
    (tab) => prune(tab, (shell) => there.has(shell) && !seen.has(shell) && Boolean(seen.add(shell))) ?? [],
  )
  return [...kept, ...shells.filter((shell) => !seen.has(shell)).map((shell) => ({ shell }))]
}

/** Puts a new shell beside or below another one, wherever that stands, and takes it from where it stood. */
export function split(tabs: readonly Layout[], at: string, side: Side, added: string): Layout[] {
  const rest = tabs.flatMap((tab) => prune(tab, (shell) => shell !== added) ?? [])
  const put = (layout: Layout): Layout => {
    if ('shell' in layout)
      return layout.shell === at ? { side, ratio: 0.5, first: layout, second: { shell: added } } : layout
    return { ...layout, first: put(layout.first), second: put(layout.second) }
  }
  return rest.map((tab) => (shellsOf(tab).includes(at) ? put(tab) : tab))
}

/** Moves the divider at path. */
export function resize(layout: Layout, path: readonly ('first' | 'second')[], ratio: number): Layout {
  if ('shell' in layout) return layout
  const [step, ...rest] = path
  if (!step) return { ...layout, ratio: Math.min(1 - LEAST, Math.max(LEAST, ratio)) }
  return { ...layout, [step]: resize(layout[step], rest, ratio) }
}

const whole: Box = { left: 0, top: 0, width: 1, height: 1 }

function parts(box: Box, side: Side, ratio: number): [Box, Box] {
  if (side === 'right') {
    const width = box.width * ratio
    return [
      { ...box, width },
      { ...box, left: box.left + width, width: box.width - width },
    ]
  }
  const height = box.height * ratio
  return [
    { ...box, height },
    { ...box, top: box.top + height, height: box.height - height },
  ]
}

/** The place of each shell. */
export function boxesOf(layout: Layout, box: Box = whole): Map<string, Box> {
  if ('shell' in layout) return new Map([[layout.shell, box]])
  const [first, second] = parts(box, layout.side, layout.ratio)
  return new Map([...boxesOf(layout.first, first), ...boxesOf(layout.second, second)])
}

export function dividersOf(layout: Layout, box: Box = whole, path: Divider['path'] = []): Divider[] {
  if ('shell' in layout) return []
  const [first, second] = parts(box, layout.side, layout.ratio)
  return [
    { path, side: layout.side, ratio: layout.ratio, box },
    ...dividersOf(layout.first, first, [...path, 'first']),
    ...dividersOf(layout.second, second, [...path, 'second']),
  ]
}

/** The shell that one comes to from another in a direction: the nearest one there. */
export function beside(layout: Layout, from: string, direction: 'left' | 'right' | 'up' | 'down'): string | null {
  const boxes = boxesOf(layout)
  const here = boxes.get(from)
  if (!here) return null
  const across = direction === 'left' || direction === 'right'
  const middle = across ? here.top + here.height / 2 : here.left + here.width / 2
  const distance = ({ left, top, width, height }: Box): number => {
    if (direction === 'left') return here.left - (left + width)
    if (direction === 'right') return left - (here.left + here.width)
    if (direction === 'up') return here.top - (top + height)
    return top - (here.top + here.height)
  }
  const aside = ({ left, top, width, height }: Box): number => {
    const [begin, end] = across ? [top, top + height] : [left, left + width]
    return Math.max(0, begin - middle, middle - end)
  }
  const candidates = [...boxes].filter(([shell, box]) => shell !== from && distance(box) > -1e-9)
  candidates.sort(([, a], [, b]) => distance(a) - distance(b) || aside(a) - aside(b))
  return candidates[0]?.[0] ?? null
}
