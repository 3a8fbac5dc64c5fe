import { useEffect, useState } from 'react'

/** How long a page may take to show a control, in milliseconds. After that the words stand in the middle. */
const PATIENCE = 4_000

const visible = (selector: string): HTMLElement | undefined => [...document.querySelectorAll<HTMLElement>(selector)].find((element) => element.getClientRects().length > 0)

/** The control that a selector finds, as soon as it is there; null when it does not come, undefined until that is known. */
export function useAnchor(selector: string, key: number): HTMLElement | null | undefined {
  const [found, setFound] = useState<{ key: number; element: HTMLElement | null }>()
  useEffect(() => {
    const look = () => {
      const element = visible(selector)
      if (!element) return false
      stop()
      setFound({ key, element })
      return true
    }
    const watcher = new MutationObserver(look)
    const patience = setTimeout(() => {
      stop()
      setFound({ key, element: visible(selector) ?? null })
    }, PATIENCE)
    const stop = () => {
      watcher.disconnect()
      clearTimeout(patience)
    }
    watcher.observe(document.body, { childList: true, subtree: true, attributes: true })
    look()
    return stop
  }, [selector, key])
  return found?.key === key ? found.element : undefined
}
