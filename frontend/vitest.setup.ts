import '@testing-library/jest-dom/vitest'
import { cleanup, configure } from '@testing-library/react'
import { afterEach, beforeEach } from 'vitest'
import { startI18n } from '@/i18n/i18n'

// Asking of every element whether it can be seen takes jsdom longer than all else
// together; and a busy machine may need many seconds to answer.
configure({ defaultHidden: true, asyncUtilTimeout: 60_000 })

// jsdom lays nothing out: give what antd and the virtual lists ask for, and nowhere to scroll to.
Element.prototype.scrollIntoView = () => {}
class ResizeObserverStub implements ResizeObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}
globalThis.ResizeObserver ??= ResizeObserverStub
window.matchMedia ??= (query: string): MediaQueryList => ({
  matches: false,
  media: query,
  onchange: null,
  addEventListener: () => {},
  removeEventListener: () => {},
  addListener: () => {},
  removeListener: () => {},
  dispatchEvent: () => false,
})

// No style sheet is loaded (css: false), so what an element says itself is its style. jsdom works that out through all
// ancestors, for every element whose name is asked for, and takes half the time of the tests for it.
const initial: Record<string, string> = { visibility: 'visible', opacity: '1', 'pointer-events': 'auto' }
const inline = new Set(['a', 'b', 'code', 'em', 'i', 'kbd', 'label', 'small', 'span', 'strong', 'svg', 'time'])
const said = (element: Element, name: string): string => {
  if (name === 'display' && element instanceof HTMLElement && element.hidden) return 'none'
  const own = 'style' in element ? (element.style as CSSStyleDeclaration).getPropertyValue(name) : ''
  if (name === 'display') return own || (inline.has(element.localName) ? 'inline' : 'block')
  return own || (initial[name] ?? '')
}
const dashed = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
window.getComputedStyle = (element: Element) =>
  new Proxy({} as CSSStyleDeclaration, {
    get: (_, name) =>
      name === 'getPropertyValue' ? (asked: string) => said(element, asked) : said(element, dashed(String(name))),
  })

await startI18n('en')

beforeEach(() => localStorage.clear())
afterEach(() => {
  cleanup()
  // antd measures text in a field that it leaves behind, and files share a document
  for (const field of document.querySelectorAll('textarea[name="hiddenTextarea"]')) field.remove()
})
