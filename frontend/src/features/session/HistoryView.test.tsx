import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { Phase } from '@/api/types.gen'
import { now } from '@/lib/now'
import { HistoryView } from './HistoryView'

it('shows when each step started and ended', async () => {
  const at = (hours: number, ms: number) => new Date(new Date(now()).setHours(hours, 4, 5, ms)).toISOString()
  const phase: Phase = {
    id: 'p1',
    session: 's',
    phase: 'prepare',
    result: 'SUCCESS',
    from: 'SCHEDULED',
    to: 'PREPARED',
    attempts: 1,
    createdAt: at(3, 0),
    updatedAt: at(3, 900),
    steps: [
      { step: 'pull', result: 'SUCCESS', startedAt: at(3, 100), endedAt: at(3, 350), message: 'It was there.' },
      { step: 'network', result: 'RUNNING', startedAt: at(3, 350) },
    ],
  }
  serve({ 'GET /api/v1/sessions/s/history': [phase] })
  renderView(<HistoryView session={makeSession({ id: 's' })} />)
  await userEvent.click(await screen.findByRole('button', { name: 'Show the steps of Prepare' }))
  expect(screen.getByText('Started')).toBeInTheDocument()
  expect(screen.getAllByText('Ended')).toHaveLength(1)
  const times = [...document.querySelectorAll('time[datetime]')].map((time) => time.textContent)
  expect(times.filter((text) => text?.includes('.'))).toEqual(['03:04:05.100', '03:04:05.350', '03:04:05.350'])
  expect(screen.getByText('It was there.')).toBeInTheDocument()
})
