const marked = new Set<string>()

/**
 * Notes in the page's performance timeline, once, when what was just drawn is on
 * the screen: two frames later, since the first may be the one being drawn.
 */
export function markShown(what: string): void {
  if (marked.has(what)) return
  marked.add(what)
  requestAnimationFrame(() => requestAnimationFrame(() => void performance.mark(`slipway:${what}`)))
}
