import { renderHook, waitFor } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { useAnchor } from './useAnchor'

const show = (name: string): HTMLElement => {
  const element = document.createElement('div')
  element.dataset.tour = name
  document.body.append(element)
  return element
}

beforeEach(() => {
  // jsdom lays nothing out: all that is there is seen.
  vi.spyOn(Element.prototype, 'getClientRects').mockReturnValue([
    new DOMRect(10, 10, 100, 20),
  ] as unknown as DOMRectList)
})
afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

it('follows the control to what takes its place', async () => {
  const { result } = renderHook(() => useAnchor('[data-tour="list"]', 0))
  expect(result.current).toBeUndefined()
  const skeleton = show('list')
  await waitFor(() => expect(result.current).toBe(skeleton))
  skeleton.remove()
  const list = show('list')
  await waitFor(() => expect(result.current).toBe(list))
})

it('takes no control of the page that is left for that of the step', async () => {
  show('head')
  const { result, rerender } = renderHook(({ at }) => useAnchor('[data-page="/folders"] [data-tour="head"]', at), {
    initialProps: { at: 4 },
  })
  expect(result.current).toBeUndefined()
  const page = document.createElement('main')
  page.dataset.page = '/folders'
  page.append(show('head'))
  document.body.append(page)
  await waitFor(() => expect(result.current).toBe(page.firstChild))
  rerender({ at: 5 })
  await waitFor(() => expect(result.current).toBe(page.firstChild))
})
