import { act, render, screen } from '@testing-library/react'
import { createMemoryRouter, RouterProvider, useLocation } from 'react-router'
import { expect, it } from 'vitest'
import { useWindowGo } from './useWindowGo'

function Place() {
  useWindowGo()
  const { pathname, search } = useLocation()
  return <p>{pathname + search}</p>
}

it('goes where the menu of the window asks for, so that the window does not load the page', () => {
  render(<RouterProvider router={createMemoryRouter([{ path: '*', element: <Place /> }])} />)
  const go = new CustomEvent('slipway:go', { detail: '/settings?section=doctor', cancelable: true })
  act(() => void window.dispatchEvent(go))
  expect(go.defaultPrevented).toBe(true)
  expect(screen.getByText('/settings?section=doctor')).toBeTruthy()
})
