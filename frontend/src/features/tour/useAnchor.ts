import { useEffect, useState } from 'react'

/** How long a page may take to show a control, in milliseconds. After that the words stand in the middle. */
const PATIENCE = 4_000

const visible = (selector: string): HTMLElement | undefined =>
  [...document.querySelectorAll<HTMLElement>(selector)].find((element) => element.getClientRects().length > 0)

/**
 * The control that a selector finds, as soon as it is there, and the one that takes its place; null when none comes,
 * undefined until that is known.
 */
export function useAnchor(selector: string, key: number): HTMLElement | null | undefined {
  const [found, setFound] = useState<{ key: number; element: HTMLElement | null }>()
  useEffect(() => {
    let last: HTMLElement | undefined
    const look = () => {
      if (last?.isConnected) return
      last = visible(selector)
      if (!last) return
      clearTimeout(patience)
      setFound({ key, element: last })
    }
    const watcher = new MutationObserver(look)
    const patience = setTimeout(() => setFound({ key, element: null }), PATIENCE)
    watcher.observe(document.body, { childList: true, subtree: true, attributes: true })
    look()
    return () => {
      watcher.disconnect()
      clearTimeout(patience)
    }
  }, [selector, key])
  return found?.key === key ? found.element : undefined
}
