import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import type { Demo } from '@/api/types.gen'
import { DemoBadge, DemoCorner } from './DemoBadge'

const real: Demo = {
  active: false,
  seed: 0,
  story: '',
  lab: '',
  lidClosed: false,
  speed: 0,
  real: '0001-01-01T00:00:00Z',
  shown: '0001-01-01T00:00:00Z',
}
const lab: Demo = {
  active: true,
  seed: 7,
  story: 'lab',
  lab: 'lab',
  lidClosed: false,
  speed: 1,
  real: '2026-05-20T08:00:00Z',
  shown: '2026-05-20T08:00:00Z',
}

describe('DemoBadge', () => {
  it('is nowhere while all is real', async () => {
    const calls = serve({ 'GET /api/v1/demo': real })
    const { container } = renderView(
      <>
        <DemoBadge />
        <DemoCorner />
      </>,
    )
    await expect.poll(() => calls.length).toBe(1)
    expect(container).toHaveTextContent(/^$/)
  })

  it('says what the demo follows from', async () => {
    serve({ 'GET /api/v1/demo': lab })
    renderView(<DemoBadge />)
    await userEvent.click(await screen.findByRole('button', { name: 'Demo' }))
    expect(await screen.findByText('Nothing here is real')).toBeInTheDocument()
    expect(screen.getByText('Everyday work on both machines')).toBeInTheDocument()
    expect(screen.getByText('7')).toBeInTheDocument()
  })

  it('closes the lid and offers to open it', async () => {
    const sent = serve({ 'GET /api/v1/demo': lab, 'PUT /api/v1/demo/lid': { ...lab, lidClosed: true } })
    renderView(<DemoBadge />)
    await userEvent.click(await screen.findByRole('button', { name: 'Close the lid' }))
    expect(await screen.findByRole('button', { name: 'Open the lid' })).toBeInTheDocument()
    expect(sent.at(-1)).toEqual({ method: 'PUT', path: '/api/v1/demo/lid', body: { closed: true } })
  })

  it('has no lid where no other machine is', async () => {
    serve({ 'GET /api/v1/demo': { ...lab, story: 'workstation', lab: '' } })
    renderView(<DemoBadge />)
    await screen.findByRole('button', { name: 'Demo' })
    expect(screen.queryByRole('button', { name: 'Close the lid' })).not.toBeInTheDocument()
  })
})
