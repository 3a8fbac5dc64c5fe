import { screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeMachine, testSettings } from '@/api/testing/session'
import { About } from './About'
import { LicensesPage } from './LicensesPage'

it('shows the licences of others', () => {
  renderView(<LicensesPage />)
  const text = screen.getByLabelText('Licenses').textContent
  for (const work of ['github.com/docker/docker', 'react', 'Mozilla Public License', 'SIL OPEN FONT LICENSE'])
    expect(text).toContain(work)
})

it('is linked from About', async () => {
  serve({ 'GET /api/v1/doctor': [], 'GET /api/v1/version': { version: '1', commit: 'a', go: 'g', os: 'o', arch: 'a' } })
  renderView(<About />, { known: { settings: testSettings, machines: [makeMachine()] } })
  expect((await screen.findByRole('link', { name: 'Licenses' })).getAttribute('href')).toBe('/licenses')
})
