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
const plainStyle = window.getComputedStyle.bind(window)
window.getComputedStyle = (element: Element) => plainStyle(element)

await startI18n('en')

beforeEach(() => localStorage.clear())
afterEach(() => {
  cleanup()
  // antd measures text in a field that it leaves behind, and files share a document
  for (const field of document.querySelectorAll('textarea[name="hiddenTextarea"]')) field.remove()
})
