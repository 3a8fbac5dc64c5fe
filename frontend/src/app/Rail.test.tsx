import { screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { Rail } from './Rail'

it('says quietly that there is a newer version', async () => {
  const newer = { version: '1.3.0', date: '2026-11-27', notes: '' }
  serve({
    'GET /api/v1/version': { version: '1.2.0', commit: '', go: '', os: '', arch: '' },
    'GET /api/v1/updates': { address: 'https://host.example/latest.json', advice: [], newer },
  })
  renderView(<Rail />, { known: { sessions: [] } })
  const link = await screen.findByRole('link', { name: 'Version 1.3.0 is available' })
  expect(link).toHaveAttribute('href', '/settings#about')
})
