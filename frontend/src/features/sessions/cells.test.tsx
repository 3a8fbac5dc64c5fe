import { screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { now } from '@/lib/now'
import { StatusCell } from './cells'

it('never says that a machine was last heard in the future, whose clock may be ahead', () => {
  renderView(<StatusCell session={makeSession({ lastHeard: new Date(now() + 1500).toISOString() })} />, { at: '/' })
  expect(screen.getByText('Last heard now')).toBeInTheDocument()
})
