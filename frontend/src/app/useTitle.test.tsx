import { expect, it } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { sections } from './sections'
import { useTitle } from './useTitle'

function Titled({ session }: { session?: string }) {
  useTitle(session)
  return null
}

const titleAt = (at: string) => {
  renderView(<Titled />, { at, path: '*', known: { sessions: [] } }).unmount()
  return document.title
}

it('names the window after the section', () => {
  expect(sections.map(({ to }) => titleAt(to))).not.toContain('Slipway')
  expect(titleAt('/folders/abc')).toBe('Folders · Slipway')
  expect(titleAt('/nowhere')).toBe('Slipway')
})

it('names the window after the session in view', () => {
  const session = makeSession({ name: 'train' })
  renderView(<Titled session={session.id} />, { at: '/sessions', path: '/sessions', known: { sessions: [session] } })
  expect(document.title).toBe('train · Slipway')
})
